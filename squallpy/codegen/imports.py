"""Imports of printed code: the steps of the kernels' modules that it names."""

import re
from typing import Final

_KERNELS: Final = "squallpy.runtime.kernels"
_WIDTH = 120  # of a line
STEPS: Final[dict[str, tuple[str, ...]]] = {  # by module
    "trigger_steps": (
        *("add_fits", "add_rows", "bit", "count_of", "enter", "exact_add", "exact_multiply", "find", "first_of"),
        *("frame_at", "half", "has_null", "is_known", "key_of", "key_room", "key_word", "length_of", "load", "load8"),
        *("load32", "multiply_fits", "number_of", "part_of_date", "record_of", "remove", "room_of", "sign", "slice_of"),
        *("store", "subtract_fits", "values_at", "words_of"),
    ),
    "intrinsics": ("lowest", "prefetch"),
    "text_steps": (
        *("ask_texts", "begins_with", "characters_of", "compare_texts", "intern", "is_like", "leading", "offset_of"),
        *("part_before", "part_length", "place_of", "same_text", "search", "size_of", "skip_letters", "text_bytes"),
        *("texts_at", "without_letters"),
    ),
    "composed_texts": ("put_date", "put_decimal", "put_in_case", "put_padded", "put_replaced", "put_text", "put_time"),
    "moment_steps": ("day_of_year", "first_of_month_after", "first_of_months", "months_after", "week_of_year"),
    "real_steps": (
        *("has_word", "mean_of", "ordinal", "real_add", "real_ceil", "real_divide", "real_floor", "real_half_away"),
        *("real_key", "real_multiply", "real_of", "real_product_rest", "real_square_root", "real_subtract"),
        *("real_trunc", "word_of"),
    ),
    "real_lanes": ("add_double", "combine_count", "combine_lane"),
    "block_steps": ("add_lifted", "cell_of", "has_odd", "multiply_each", "multiply_rows", "rows_of", "settle_sum"),
    "delta_records": ("append_record", "does_append", "recent_at"),
    "look_ahead": ("find_entries", "find_keys", "find_rows", "found_at", "records_found"),
    "sorted_steps": ("advance_extremes", "sort_rows"),
    "range_steps": ("end_of", "entry_of", "middle", "next_between", "overlay", "real_of_rank", "sum_between"),
    "touched_groups": ("add_noted_rows",),
    "stored_payloads": ("payload_of",),
    "key_marks": ("mark_key",),
    "kernel_compiler": ("address", "called", "kernel"),
}
IMPORTED: Final = frozenset(name for names in STEPS.values() for name in names) | {"LEAST_WORD"}
"""Names that a module of printed code may have from elsewhere, hence its functions give to nothing else."""


def import_lines(text: str) -> str:
    """Print the imports of what a text names."""
    used, lines = set(re.findall(r"\w+", text)), list[str]()
    for module, names in STEPS.items():
        if found := [name for name in names if name in used]:
            head = f"from {_KERNELS}.{module} import"
            line = f"{head} {', '.join(found)}"
            lines.append(line if len(line) <= _WIDTH else "\n".join([f"{head} (", *(f"    {n}," for n in found), ")"]))
    return "\n".join(lines)
