"""Text functions, by Arrow's compute kernels; positions count characters from 1."""

import json
import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.logical.expressions import Call
from squallpy.logical.similar_to import expression_of
from squallpy.runtime.evaluate.evaluator_table import (
    Evaluated,
    evaluator,
    integer_of_each_text,
    integers,
    mask,
    of_each,
    of_each_text,
    parameter,
    text_evaluator,
)
from squallpy.runtime.evaluate.vectors import Vec, VectorFunction, full

_CODES = {
    letter: code for code, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1) for letter in letters
}
LONGEST = 2**31  # more characters than a text has
MOST_BYTES = 2**30  # bytes of texts that a function may make in one batch


def like_parts(pattern: str, escape: str | None) -> list[tuple[str, bool]]:
    """Split a LIKE pattern into characters, each with whether it is a wildcard: 'a!%_' ESCAPE '!' → a, %, any one."""
    out, at = list[tuple[str, bool]](), 0
    while at < len(pattern):
        escaped = pattern[at] == escape and at + 1 < len(pattern)
        at += escaped
        out.append((pattern[at], not escaped and pattern[at] in "%_"))
        at += 1
    return out


def like(values: Any, pattern: str, escape: str | None) -> Any:
    """Match LIKE. NB: Arrow's matcher treats \\ before other characters as literal only in some patterns."""
    parts = like_parts(pattern, escape)
    if not any(character == "\\" for character, _ in parts):
        known = (c if wild or c not in "%_" else f"\\{c}" for c, wild in parts)
        return pc.match_like(values, "".join(known))
    wilds = {"%": ".*", "_": "."}
    expression = "".join(wilds[c] if wild else re.escape(c) for c, wild in parts)
    return pc.match_substring_regex(values, rf"(?s)\A{expression}\z")


def similar_to(values: Any, pattern: str, escape: str | None) -> Any:
    """Match SIMILAR TO."""
    return match_regex(pc.match_substring_regex, values, expression_of(pattern, escape))


@text_evaluator("substring")
def substring(values: Any, start: int, length: int | None = None) -> Any:
    """Evaluate SUBSTRING(x, start, length): start 0 means 1; a negative one counts from the end."""
    start, length = max(-LONGEST, min(start, LONGEST)), None if length is None else min(length, LONGEST)
    if length is not None and length <= 0:
        return pc.utf8_slice_codeunits(values, 0, 0)
    if start >= 0:
        begin = max(start - 1, 0)
        return pc.utf8_slice_codeunits(values, begin, None if length is None else begin + length)
    end = None if length is None or start + length >= 0 else start + length
    return pc.utf8_slice_codeunits(values, start, end)


text_evaluator("trim")(pc.utf8_trim)
text_evaluator("ltrim")(pc.utf8_ltrim)
text_evaluator("rtrim")(pc.utf8_rtrim)
text_evaluator("reverse")(pc.utf8_reverse)


@text_evaluator("length")
def length(values: Any) -> Any:
    return integers(pc.utf8_length(values))


@text_evaluator("octets")
def octets(values: Any) -> Any:
    return integers(pc.binary_length(values))


@text_evaluator("startswith")
def starts_with(values: Any, split_part: str) -> Any:
    return mask(pc.starts_with(values, split_part))


@text_evaluator("endswith")
def ends_with(values: Any, split_part: str) -> Any:
    return mask(pc.ends_with(values, split_part))


@text_evaluator("contains")
def contains(values: Any, split_part: str) -> Any:
    return mask(pc.match_substring(values, split_part))


@text_evaluator("rlike")
def matches(values: Any, expression: str) -> Any:
    return mask(match_regex(pc.match_substring_regex, values, expression))


@text_evaluator("replace")
def replace(values: Any, old: str, new: str) -> Any:
    return pc.replace_substring(values, old, new) if old else values


def compare(name: str, left: Any, right: Any) -> Any:
    """Compare texts by code point."""
    function = {
        "=": pc.equal,
        "<>": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }[name]
    return function(_scalar(left), _scalar(right))


def _scalar(values: Any) -> Any:
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else _constant(values)


@lru_cache(maxsize=1024)  # of literals, reused in each batch
def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.string())


def concat(values: list[Any]) -> Any:
    return pc.binary_join_element_wise(*(_scalar(v) for v in values), "")


def check_room(name: str, size: int) -> None:
    """Raise SQ5001 for texts that memory, or an Arrow array, may have no room for."""
    if size > MOST_BYTES:
        message = f"{name.upper()} makes {size:,} bytes of text in one batch, at most {MOST_BYTES:,} are allowed"
        raise SquallError("SQ5001", message, hint="repeat or pad less, or use smaller batches")


@text_evaluator("split")
def split(values: Any, separator: str, most: int) -> Any:
    """Split texts into ARRAYs, as JSON, with so many parts at most, if that is not 0 or less."""
    known = pc.dictionary_encode(values)
    known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    splits = most - 1 if most > 0 else None
    parts = match_regex(pc.split_pattern_regex, known.dictionary, separator, max_splits=splits).to_pylist()
    texts = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in parts]
    return pa.array(texts or [""], pa.string()).take(pc.fill_null(known.indices, 0))


@text_evaluator("repeat")
def repeat(values: Any, count_matches: int) -> Any:
    """Repeat each text."""
    count_matches = max(0, count_matches)
    check_room("repeat", count_matches * (pc.sum(pc.binary_length(values)).as_py() or 0))
    return pc.binary_repeat(values, count_matches)


@text_evaluator("lpad")
def left_pad(values: Any, width: int, fill: str) -> Any:
    return pad(values, width, fill, left=True)


@text_evaluator("rpad")
def right_pad(values: Any, width: int, fill: str) -> Any:
    return pad(values, width, fill, left=False)


def pad(values: Any, width: int, fill: str, left: bool) -> Any:
    """Pad with repetitions of a text, or truncate, to `width` characters."""
    width = max(0, min(width, LONGEST))
    check_room("lpad" if left else "rpad", width * len(values) if fill else 0)
    cut = pc.utf8_slice_codeunits(values, 0, width)
    if len(fill) < 2:
        return (pc.utf8_lpad if left else pc.utf8_rpad)(cut, width, fill) if fill else cut
    lengths = pc.dictionary_encode(pc.utf8_length(_array(cut)))
    lacking = [width - (length or 0) for length in lengths.dictionary.to_pylist()]  # for each distinct length
    fills = pa.array([(fill * (n // len(fill) + 1))[:n] for n in lacking], pa.string()).take(lengths.indices)
    return concat([fills, cut] if left else [cut, fills])


def _array(values: Any) -> Any:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


@cache
def _mapped_in_full() -> dict[str, str]:
    """Find the characters that Arrow maps one to one in case, where Unicode's rule depends on context or adds letters.

    'ß' is 'SS' in upper case, 'Σ' at the end of a word is 'ς' in lower case, 'ǆ' at its start is 'ǅ'
    """
    every = [chr(point) for point in range(0x80, 0x10000)]
    titles = "".join(c for c in every if len(c.title()) > 1 or c.title() != c.upper())
    return {
        "upper": f"[{''.join(c for c in every if len(c.upper()) > 1)}]",
        "lower": "[İΣ]",
        "capitalize": f"[İΣ{titles}]",
    }


def _in_case(values: Any, name: str, simple: Any, full: Callable[[str], str]) -> Any:
    """Map the case of texts: by Arrow, or in full where a text has a character that needs it."""
    array = _array(values)
    if pc.all(pc.string_is_ascii(array)).as_py() is not False:
        return simple(array)
    special = pc.fill_null(pc.match_substring_regex(array, _mapped_in_full()[name]), False)
    if not pc.any(special).as_py():
        return simple(array)
    return pc.replace_with_mask(simple(array), special, of_each(array.filter(special), full, pa.string()))


@text_evaluator("upper")
def upper(values: Any) -> Any:
    """Map to upper case: 'Straße'  →  'STRASSE'."""
    return _in_case(values, "upper", pc.utf8_upper, str.upper)


@text_evaluator("lower")
def lower(values: Any) -> Any:
    """Map to lower case: 'ΟΔΟΣ'  →  'οδος'."""
    return _in_case(values, "lower", pc.utf8_lower, str.lower)


@text_evaluator("initcap")
def initcap(values: Any) -> Any:
    """Map words, which spaces separate, to initial capitals: 'ab CD'  →  'Ab Cd'."""
    words = pc.split_pattern(_array(values), " ")
    capitals = _in_case(words.values, "capitalize", pc.utf8_capitalize, str.capitalize)
    return pc.binary_join(pa.ListArray.from_arrays(words.offsets, capitals), " ")


@evaluator("concat_ws")
def joined(call: Call, args: Evaluated) -> VectorFunction:
    separator = parameter(call, 0)
    return lambda frame: Vec(join_non_null(separator, [full(a(frame), call.type, frame.rows) for a in args[1:]]))


def join_non_null(separator: str, parts: list[Any]) -> Any:
    """Join the texts that are not NULL with a separator."""
    arrays = [_array(v if ok is None else pc.if_else(pa.array(ok), v, pa.scalar(None, v.type))) for v, ok in parts]
    # NB: Arrow drops rows of NULLs only; the empty text at the start keeps them, and its separator is cut off again
    first = pa.array([""], pa.string()).take(pa.array(np.zeros(len(arrays[0]), np.int64)))
    return pc.utf8_slice_codeunits(
        pc.binary_join_element_wise(first, *arrays, separator, null_handling="skip"), len(separator)
    )


@text_evaluator("split_part")
def split_part(values: Any, separator: str, position: int) -> Any:
    """Select a part between separators, counted from the end if the position is negative; '' if there is none."""
    if not separator:
        return values if position in (1, -1) else pc.utf8_slice_codeunits(values, 0, 0)
    lists = pc.split_pattern(_array(values), separator)
    starts, ends = np.asarray(lists.offsets)[:-1], np.asarray(lists.offsets)[1:]
    at = starts + position - 1 if position > 0 else ends + position
    return pc.fill_null(lists.values.take(pa.array(at, mask=(at < starts) | (at >= ends))), "")


@text_evaluator("instr")
def position_of(values: Any, sought: str) -> Any:
    """Find the first occurrence of a text, in characters from 1; 0 if there is none."""
    if not sought:
        return np.ones(len(values), np.int64)
    lists = pc.split_pattern(_array(values), sought, max_splits=1)
    starts, ends = np.asarray(lists.offsets)[:-1], np.asarray(lists.offsets)[1:]
    substring_index = pc.utf8_length(lists.values.take(pa.array(starts, mask=starts >= ends)))
    return np.where(ends - starts > 1, np.asarray(pc.fill_null(substring_index, 0)) + 1, 0).astype(np.int64)


def match_regex(function: Any, values: Any, *arguments: str, **options: Any) -> Any:
    """Call a function of regular expressions; SQ5002 if one is invalid."""
    try:
        return function(values, *arguments, **options)
    except pa.ArrowInvalid as error:
        raise SquallError("SQ5002", f"'{arguments[0]}' is not a valid regular expression: {error}") from None


@text_evaluator("regexp_extract")
def extract_group(values: Any, expression: str, group: int) -> Any:
    """Extract a group of the first match, group 0 being the whole match; '' where nothing matches."""
    matched = match_regex(pc.match_substring_regex, values, expression)
    if not 0 <= group <= group_count(expression):
        raise SquallError("SQ5002", f"'{expression}' has no group {group}")
    # NB: .*? and .* take the text around the first match
    whole = f"(?s)^.*?({expression}).*$" if group == 0 else f"(?s)^.*?(?:{expression}).*$"
    found = match_regex(pc.replace_substring_regex, values, whole, rf"\{group or 1}")
    return pc.if_else(matched, found, "")


def group_count(expression: str) -> int:
    """Count the groups of a regular expression."""
    plain = re.sub(r"\\.|\[\^?\]?[^]]*\]", "", expression)
    return len(re.findall(r"\((?!\?)|\(\?P?<[A-Za-z_]", plain))


@text_evaluator("regexp_count")
def count_matches(values: Any, expression: str) -> Any:
    """Count the matches of a regular expression."""
    return np.asarray(pc.fill_null(match_regex(pc.count_substring_regex, values, expression), 0)).astype(np.int64)


@text_evaluator("regexp_instr")
def place_of_match(values: Any, expression: str) -> Any:
    """Find the first match of a regular expression, in characters from 1; 0 if there is none."""
    starts = match_regex(pc.find_substring_regex, values, expression)
    before = [
        len(text.encode()[:start].decode()) + 1 if text is not None and start >= 0 else 0
        for text, start in zip(values.to_pylist(), starts.to_pylist(), strict=True)
    ]
    return np.array(before, np.int64)


@text_evaluator("regexp_extract_all")
def extract_groups(values: Any, expression: str, group: int) -> Any:
    """List a group of each match as an ARRAY, in JSON; group 0 is the whole match."""
    if not 0 <= group <= group_count(expression):
        raise SquallError("SQ5002", f"'{expression}' has no group {group}")
    marked = match_regex(pc.replace_substring_regex, values, f"({expression})", rf"{MARKS[0]}\{group + 1}{MARKS[1]}")

    def found(text: str) -> str:
        return json.dumps(BETWEEN_MARKS.findall(text), ensure_ascii=False, separators=(",", ":"))

    return of_each(marked, found, pa.string())


MARKS = "\ue0fe", "\ue0ff"  # of Unicode's private use: what a text may not have
BETWEEN_MARKS = re.compile(f"{MARKS[0]}(.*?){MARKS[1]}", re.DOTALL)


@text_evaluator("luhn_check")
def check_digits(values: Any) -> Any:
    return mask(of_each(values, _is_checked, pa.bool_()))


def _is_checked(text: str) -> bool:
    """True if all characters are digits and those doubled, every second from the last but one, sum up to tens."""
    if not text.isascii() or not text.isdigit():
        return False
    digits = [int(digit) for digit in reversed(text)]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


@text_evaluator("substring_index")
def substring_index(values: Any, separator: str, count: int) -> Any:
    """Take the text before the n-th separator, or after the n-th from the end if `count` is negative."""
    if not separator or not count:
        return pc.utf8_slice_codeunits(values, 0, 0)
    if count < 0:
        return pc.utf8_reverse(substring_index(pc.utf8_reverse(values), separator[::-1], -count))
    return pc.binary_join(
        pc.list_slice(pc.split_pattern(_array(values), separator, max_splits=count), 0, count), separator
    )


@text_evaluator("ascii")
def first_points(values: Any) -> Any:
    """Return the code point of the first character, 0 for ''."""
    first = pc.dictionary_encode(pc.utf8_slice_codeunits(_array(values), 0, 1))
    points = np.array([ord(text) if text else 0 for text in first.dictionary.to_pylist()] or [0], np.int64)
    return points[np.asarray(pc.fill_null(first.indices, 0)).astype(np.int64)]


@evaluator("chr")
def characters(call: Call, args: Evaluated) -> VectorFunction:
    return lambda frame: character_of(full(args[0](frame), call.args[0].type, frame.rows))


def character_of(vec: Vec) -> Vec:
    """Convert numbers to characters, by their last eight bits as in Spark; '' for negative ones."""
    points = np.asarray(vec.values, np.int64)
    known = pa.array([chr(n) for n in range(256)] + [""], pa.string())
    return Vec(known.take(pa.array(np.where(points < 0, 256, points & 255))), vec.valid)


@text_evaluator("regexp_replace")
def replaced_matches(values: Any, expression: str, new: str) -> Any:
    return match_regex(pc.replace_substring_regex, values, expression, arrow_replacement(new))


def arrow_replacement(text: str) -> str:
    r"""Translate a replacement from Spark's notation of groups to Arrow's: '$1-\\$'  →  '\\1-$'."""
    return re.sub(r"\\(.)|\$(\d)", lambda m: rf"\{m[2]}" if m[2] else m[1].replace("\\", r"\\"), text)


@text_evaluator("translate")
def translate(values: Any, characters: str, others: str) -> Any:
    """Replace each of some characters by the other at its position, or remove it if there is none.

    All texts together are one array of code points on the way.
    """
    array = pc.fill_null(_array(values).cast(pa.string()), "")
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset : array.offset + len(array) + 1]
    text = array.buffers()[2].to_pybytes()[offsets[0] : offsets[-1]].decode()
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    new, kept = points.copy(), np.ones(len(points), bool)
    for number, character in reversed(list(enumerate(characters))):  # the first of equal characters wins
        here = points == ord(character)
        kept[here] = number < len(others)
        new[here] = ord(others[number]) if number < len(others) else 0
    ends = np.cumsum(np.asarray(pc.utf8_length(array)))
    sizes = (1 + (new >= 0x80) + (new >= 0x800) + (new >= 0x10000)) * kept
    bounds = np.concatenate([[0], np.cumsum(sizes)])[np.concatenate([[0], ends]).astype(np.int64)].astype(np.int32)
    data = new[kept].tobytes().decode("utf-32-le").encode()
    return pa.StringArray.from_buffers(len(array), pa.py_buffer(bounds), pa.py_buffer(data))


@text_evaluator("soundex")
@of_each_text
def soundex(text: str) -> str:
    """Evaluate SOUNDEX: 'Robert'  →  'R163'; a text that does not begin with a letter is unchanged.

    Adjacent letters of one code count once, also with H or W between them.
    """
    word = text.upper()
    if not ("A" <= word[:1] <= "Z"):
        return text
    code, last = word[0], _CODES.get(word[0], 0)
    for letter in word[1:]:
        found = _CODES.get(letter, 0)
        if found and found != last:
            code += str(found)
        if letter not in "HW":
            last = found
    return code[:4].ljust(4, "0")


@text_evaluator("find_in_set")
@integer_of_each_text
def place_in_list(text: str, elements: str) -> int:
    """Find the place of a text in a list with commas: ('b', 'a,b')  →  2; 0 if it is not there."""
    known = elements.split(",")
    return known.index(text) + 1 if text in known else 0


@text_evaluator("levenshtein")
@integer_of_each_text
def distance(text: str, other: str) -> int:
    """Compute the Levenshtein distance: the least number of insertions, deletions and changes between two texts."""
    row = list(range(len(other) + 1))
    for i, here in enumerate(text, 1):
        corner, row[0] = row[0], i
        for j, there in enumerate(other, 1):
            corner, row[j] = row[j], min(corner + (here != there), row[j] + 1, row[j - 1] + 1)
    return row[-1]


@text_evaluator("mask")
@of_each_text
def masked(text: str, *others: str) -> str:
    """Put a character in the place of upper and lower case letters, of digits and of others; '' leaves them."""
    kinds: tuple[Callable[[str], bool], ...] = (str.isupper, str.islower, str.isdigit, lambda _: True)

    def shown(character: str) -> str:
        return next(other or character for is_kind, other in zip(kinds, others, strict=True) if is_kind(character))

    return "".join(map(shown, text))
