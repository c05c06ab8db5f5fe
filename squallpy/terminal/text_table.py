"""Rows as aligned text, numbers to the right, columns at a time.

 l_orderkey      revenue
───────────  ───────────
    2456423  406181.0111
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.runtime.formats.text_columns import cells, is_number, join, to_bytes

_CONTROL = r"[\x00-\x1f\x7f-\x{9f}]"


def table_text(table: pa.Table, color: bool = False) -> Iterator[bytes]:
    """Write header, rule and rows, each line ended by a newline; names in bold with `color`."""
    columns = [shown(column) for column in table.columns]
    right = [is_number(kind) for kind in table.schema.types]
    names = [shown(pa.array([name])) for name in table.column_names]
    widths = [max(widest(name), widest(column)) for name, column in zip(names, columns, strict=True)]
    header = join(*map(_pad, names, widths, right), by="  ")[0].as_py().rstrip()
    yield (f"\x1b[1m{header}\x1b[0m\n" if color else f"{header}\n").encode()
    yield ("  ".join("─" * width for width in widths) + "\n").encode()
    if len(table):
        lines = join(*map(_pad, columns, widths, right), by="  ")
        yield to_bytes(pc.utf8_rtrim(lines, " "))


def shown(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Write a column for people: NULL by name, and no character that could move a cursor."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pc.replace_substring_regex(pc.fill_null(cells(array), "NULL"), _CONTROL, "·")


def _widths(text: pa.Array) -> pa.Array:
    """Measure the terminal columns that each string takes."""
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return pc.utf8_length(text)
    from rich.cells import cell_len

    return pa.array([cell_len(s) for s in text.to_pylist()], pa.int32())


def widest(text: pa.Array) -> int:
    """Measure the terminal columns that the longest string takes."""
    return pc.max(_widths(text)).as_py() or 0


def _pad(text: pa.Array, width: int, right: bool) -> pa.Array:
    space = pc.binary_repeat(" ", pc.subtract(width, _widths(text)))
    return join(space, text) if right else join(text, space)
