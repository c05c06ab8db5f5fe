"""JSON lines of one shape, spelled as csv, which Arrow parses several times as fast.

{"k": 1, "who": {"name": "ann"}}⏎{"k": 2, "who": {"name": null}}⏎      k, who.name are read   →   1,"ann"⏎2,⏎

The first line makes the template: the text between its values, and the path of each. Where a line differs, or a value
is none that both formats spell alike, nothing is spelled, and the lines are parsed as JSON.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from squallpy.base.records import dataclass
from squallpy.runtime.formats.csv import fits_precision
from squallpy.runtime.formats.line_index import BYTES
from squallpy.runtime.kernels.intrinsics import copy_bytes, load, load8, lowest
from squallpy.runtime.kernels.kernel_compiler import GIVEN_VECTOR, address, called, inlined, kernel

SKIPPED, EXACT, FLOATING, TEXT = range(4)  # what becomes of a value
_TOKEN = re.compile(rb'[ \t]*([{}:,]|"[^"\\\x00-\x1f]*"|[^ \t\r\n{}\[\]:,"\\]+)')
LOW_BITS, HIGH_BITS = 0x0101010101010101, -0x7F7F7F7F7F7F7F80  # of each byte of a word
_MOST = 1000  # values of a line


@dataclass(frozen=True, slots=True)
class Template:
    """A line without its values.

    Args:
        text: What is before each value, and behind the last.
        ends: Where each of these parts ends.
        paths: Those of the values.
    """

    text: bytes
    ends: tuple[int, ...]
    paths: tuple[tuple[str, ...], ...]


@lru_cache(maxsize=64)
def template_of(line: bytes) -> Template | None:
    """Make the template of a line; None if it has an array, an escape, nothing at all or one path twice."""
    text, ends, paths, path, at, kept = b"", list[int](), list[tuple[str, ...]](), list[str](), 0, 0
    key, wanted = "", b"{"
    while wanted:
        if (found := _TOKEN.match(line, at)) is None or len(paths) > _MOST:
            return None
        token, at = found[1], found.end()
        if wanted == b"v" and token not in (b"{", b"}", b":", b","):
            text += line[kept : found.start(1)]
            ends.append(len(text))
            paths.append((*path, key))
            kept, wanted = at, b",}"
        elif token == b"{" and wanted in (b"{", b"v"):
            path, wanted = [*path, key] if wanted == b"v" else path, b"k"
        elif wanted == b"k" and token.startswith(b'"'):
            key, wanted = token[1:-1].decode(errors="replace"), b":"
        elif token == b":" and wanted == b":":
            wanted = b"v"
        elif token == b"," and wanted == b",}":
            wanted = b"k"
        elif token == b"}" and wanted == b",}":
            wanted = b",}" if path else b""
            path = path[:-1]
        else:
            return None
    text += line[kept:at]
    if line[at:].strip() or len({*paths}) < len(paths):
        return None
    return Template(text, (*ends, len(text)), tuple(paths))


def parse_alike(data: bytes, rows: int, types: Mapping[tuple[str, ...], pa.DataType]) -> pa.Table | None:
    """Parse lines of one shape: a column for each path, in their order; None if they are not of one, or not simple."""
    made = template_of(data[: data.find(b"\n") + 1 or len(data)].strip())
    if made is None:
        return None
    uses, there = [SKIPPED] * len(made.paths), {path: at for at, path in enumerate(made.paths)}
    for path, type in types.items():
        if path in there:
            uses[there[path]] = _use(type)
        elif any(path == other[: len(path)] or other == path[: len(other)] for other in there):
            return None
    read = [path for path, use in zip(made.paths, uses, strict=True) if use]
    if not read or not all(map(_use, types.values())):
        return None
    out = np.empty(len(data) + 3 * rows * len(read), np.uint8)
    lines, text = np.frombuffer(data, np.uint8), np.frombuffer(made.text, np.uint8)
    size = _spell(lines, text, np.array(made.ends), np.array(uses), out, rows)
    if size < 0:
        return None
    found = _parse_csv(pa.py_buffer(out[:size]), [types[path] for path in read])
    if len(found) != rows or not all(map(fits_precision, found.columns)):
        return None
    columns = {path: found.column(at) for at, path in enumerate(read)}
    return pa.table(
        [columns.get(path, pa.nulls(rows, type)) for path, type in types.items()], [str(i) for i in range(len(types))]
    )


def _use(type: pa.DataType) -> int:
    """Choose what becomes of the values of a column; SKIPPED if csv cannot spell them."""
    if pa.types.is_string(type) or pa.types.is_temporal(type):
        return TEXT
    if pa.types.is_floating(type):
        return FLOATING
    return EXACT if pa.types.is_integer(type) or pa.types.is_decimal(type) or pa.types.is_boolean(type) else SKIPPED


def _parse_csv(data: pa.Buffer, types: Sequence[pa.DataType]) -> pa.Table:
    names = [str(i) for i in range(len(types))]
    reading = csv.ReadOptions(use_threads=False, block_size=data.size + 1, column_names=names)
    parsing = csv.ParseOptions(ignore_empty_lines=False)
    converting = csv.ConvertOptions(
        column_types=dict(zip(names, types, strict=True)), null_values=[""], strings_can_be_null=True,
        quoted_strings_can_be_null=False, true_values=["true"], false_values=["false"],
    )  # fmt: skip
    return csv.read_csv(pa.BufferReader(data), reading, parsing, converting)


@kernel(f"int64({BYTES}, {BYTES}, {GIVEN_VECTOR}, {GIVEN_VECTOR}, uint8[::1], int64)")
def _spell(data: Any, text: Any, ends: Any, uses: Any, out: Any, rows: int) -> int:
    """Spell the values of lines as csv, and return the bytes of it; −1 if a line is none of the template."""
    at, size, end, values = 0, 0, len(data), len(uses)
    place, template = address(data), address(text)
    for _ in range(rows):
        while at < end and (data[at] == 10 or data[at] == 13):
            at += 1
        begin, is_first = 0, True
        for value in range(values + 1):
            stop = ends[value]
            if at + stop - begin > end:
                return -1
            length = stop - begin
            if not _is_same(place + at, template + begin, length):
                return -1
            at += length
            begin = stop
            if value == values:
                break
            if at >= end:
                return -1
            use = uses[value]
            if use and not is_first:
                out[size] = 44
                size += 1
            is_first = is_first and use == 0
            if data[at] == 34:
                if use == 1 or use == 2:
                    return -1
                first = at
                at = _end_of_text(place, at + 1, end)
                if at >= end or data[at] != 34:
                    return -1
                at += 1
                if use:
                    copy_bytes(address(out) + size, place + first, at - first)
                    size += at - first
                continue
            first, kind = at, data[at]
            while at < end and data[at] != 44 and data[at] != 125 and data[at] > 32:
                at += 1
            length = at - first
            if kind == 110:  # null
                if length != 4 or data[first + 1] != 117 or data[first + 2] != 108 or data[first + 3] != 108:
                    return -1
                continue
            if kind == 116:  # true
                if length != 4 or data[first + 1] != 114 or data[first + 2] != 117 or data[first + 3] != 101:
                    return -1
            elif kind == 102:  # false
                if length != 5 or data[first + 1] != 97 or data[first + 2] != 108:
                    return -1
                if data[first + 3] != 115 or data[first + 4] != 101:
                    return -1
            elif _number(data, first, at) < (2 if use == 1 else 1):
                return -1
            if use:
                for i in range(first, at):
                    out[size] = data[i]
                    size += 1
        out[size] = 10
        size += 1
        if at < end and data[at] != 10 and data[at] != 13:
            return -1
    while at < end and data[at] <= 32:
        at += 1
    return size if at == end else -1


@inlined
def _is_same(one: int, other: int, size: int) -> bool:
    """True if so many bytes at two addresses are the same."""
    for i in range(size >> 3):
        if load(one, i) != load(other, i):
            return False
    for i in range(size & ~7, size):  # noqa: SIM110 - compiled
        if load8(one, i) != load8(other, i):
            return False
    return True


@inlined
def _end_of_text(place: int, at: int, end: int) -> int:
    """Find the first quote, backslash or control character, eight bytes at once; `end` if there is none.

    A byte of a word is 0, or below 32, where the lowest that borrows is one.
    """
    while at + 8 <= end:
        word = load(place + at, 0)
        quotes, slashes = word ^ 34 * LOW_BITS, word ^ 92 * LOW_BITS
        found = (quotes - LOW_BITS) & ~quotes | (slashes - LOW_BITS) & ~slashes | (word - 32 * LOW_BITS) & ~word
        if found & HIGH_BITS:
            return at + (lowest(found & HIGH_BITS) >> 3)
        at += 8
    while at < end and load8(place, at) != 34 and load8(place, at) != 92 and load8(place, at) >= 32:
        at += 1
    return at


@called
def _number(data: Any, at: int, end: int) -> int:
    """Look at a token: 2 for a number without an exponent, 1 for one that has one, 0 for anything else."""
    if at < end and data[at] == 45:
        at += 1
    first = at
    while at < end and 48 <= data[at] <= 57:
        at += 1
    if at == first or (data[first] == 48 and at > first + 1):
        return 0
    if at < end and data[at] == 46:
        first = at = at + 1
        while at < end and 48 <= data[at] <= 57:
            at += 1
        if at == first:
            return 0
    if at == end:
        return 2
    if data[at] != 101 and data[at] != 69:
        return 0
    at += 1
    if at < end and (data[at] == 43 or data[at] == 45):
        at += 1
    first = at
    while at < end and 48 <= data[at] <= 57:
        at += 1
    return 1 if at == end and at > first else 0
