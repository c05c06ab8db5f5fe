"""Row offsets of a delimited text: after one scan of the file, any range of rows can be read.

A row ends at a line end (\\n, \\r or both) outside quotes; empty lines are not rows. Quotes count only at the start of
a field, as in Arrow's parser. Only the start of every EVERY-th row is stored.
"""

from dataclasses import InitVar, dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.runtime.formats.compression import open_text
from squallpy.runtime.formats.csv_dialect import Dialect
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.formats.text_encoding import HEAD, UTF8, Encoding, encoding_of
from squallpy.runtime.kernels.kernel_compiler import VECTOR, kernel

EVERY = 4096
CHUNK = 1 << 24

BYTES = "Array(uint8, 1, 'C', readonly=True)"
MODE, ROWS, LINE, RETURN, FOUND = range(5)  # words of the state of a scan
AT_LINE, AT_FIELD, INSIDE, QUOTED, CLOSING, ESCAPED, ESCAPED_QUOTED = range(7)
NEVER = 256  # equals no byte: the dialect has no quote or escape character


@kernel(f"int64({BYTES}, {VECTOR}, int64, int64, int64, boolean, int64, int64, {VECTOR}, {VECTOR})")
def scan(
    data: Any, state: Any, delimiter: int, quote: int, escape: int, plain: bool, every: int, limit: int,
    starts: Any, lines: Any,
) -> int:  # fmt: skip
    """Scan to the end of `data`, or to the start of row `limit`, and return the end.

    Notes offset and line number of each `every`-th row in `starts` and `lines`, their number in state[FOUND]. `plain`:
    `data` holds neither quotes nor escapes, so that only line ends matter.
    """
    mode, rows, line, after_return, found = state[0], state[1], state[2], state[3], 0
    at, end = 0, len(data)
    while at < end:
        byte = data[at]
        if byte == 10 or byte == 13:
            if byte == 13 or after_return == 0:
                line += 1
            after_return = 1 if byte == 13 else 0
            if mode == ESCAPED:
                mode = INSIDE
            elif mode == ESCAPED_QUOTED:
                mode = QUOTED
            elif mode != QUOTED:
                mode = AT_LINE
            at += 1
            continue
        after_return = 0
        if mode == AT_LINE:
            if rows == limit:
                break
            if rows % every == 0:
                starts[found] = at
                lines[found] = line
                found += 1
            rows += 1
            mode = AT_FIELD
        if plain and mode <= INSIDE:
            at += 1
            while at < end and data[at] != 10 and data[at] != 13:
                at += 1
            mode = AT_FIELD if data[at - 1] == delimiter else INSIDE
            continue
        if mode == QUOTED:
            if byte == quote:
                mode = CLOSING
            elif byte == escape:
                mode = ESCAPED_QUOTED
        elif mode == ESCAPED:
            mode = INSIDE
        elif mode == ESCAPED_QUOTED:
            mode = QUOTED
        elif byte == delimiter:
            mode = AT_FIELD
        elif byte == quote and (mode == AT_FIELD or mode == CLOSING):  # noqa: SIM109 - compiled
            mode = QUOTED
        elif byte == escape:
            mode = ESCAPED
        else:
            mode = INSIDE
        at += 1
    state[0], state[1], state[2], state[3], state[4] = mode, rows, line, after_return, found
    return at


@dataclass(slots=True)
class LineScan:
    """A scan in progress: `rows` so far; `line` counts from `first`. Its input is whole units of the encoding."""

    dialect: Dialect
    first: InitVar[int] = 1
    encoding: Encoding = UTF8
    state: npt.NDArray[np.int64] = field(init=False)

    def __post_init__(self, first: int) -> None:
        self.state = np.array([AT_LINE, 0, first, 0, 0], np.int64)

    @property
    def rows(self) -> int:
        return int(self.state[ROWS])

    @property
    def mode(self) -> int:
        return int(self.state[MODE])

    @property
    def line(self) -> int:
        return int(self.state[LINE])

    def run(self, data: Any, limit: int = -1) -> tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Scan on, and return the end, with offsets and lines of the rows to index."""
        d, width = self.dialect, self.encoding.width
        bytes_ = self.encoding.units(data)
        room = len(bytes_) // EVERY + 2
        starts, lines = np.empty(room, np.int64), np.empty(room, np.int64)
        plain = not any(mark and (bytes_ == ord(mark)).any() for mark in (d.quote, d.escape))
        at = scan(
            bytes_, self.state, ord(d.delimiter), code(d.quote), code(d.escape), plain, EVERY, limit, starts, lines
        )
        found = int(self.state[FOUND])
        return at * width, starts[:found] * width, lines[:found]


def code(mark: str) -> int:
    return ord(mark) if mark else NEVER


@dataclass(frozen=True, slots=True, eq=False)
class Index:
    """The index of a file's rows, the header included: their number, and the offset of each EVERY-th."""

    rows: int
    size: int
    starts: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    open_quote: bool  # the file ends within quotes
    encoding: Encoding = UTF8
    is_ended: bool = True  # its last row has a line end

    def offset(self, block: int) -> int:
        """Return the offset of a block of EVERY rows; the end of the file after the last."""
        return int(self.starts[block]) if block < len(self.starts) else self.size

    def up_to(self, rows: int, size: int) -> "Index":
        """Cut the index after a number of whole rows, which end at an offset."""
        blocks = -(-rows // EVERY)
        return Index(rows, size, self.starts[:blocks], self.lines[:blocks], False, self.encoding)


@lru_cache(maxsize=256)
def build_index(file: File, dialect: Dialect) -> Index:
    """Scan a file, once per process."""
    source, size = open_text(file, dialect.compression)
    with source as stream:
        encoding, at = encoding_of(stream.read_at(min(HEAD, size), 0), dialect.encoding, file.display_name)
        empty = np.empty(0, np.int64)
        return _scan_from(stream, size, at, LineScan(dialect, encoding=encoding), Index(0, 0, empty, empty, False))


def extend_index(index: Index, file: File, dialect: Dialect) -> Index:
    """Scan what has been appended to a file since it was indexed, from the last row that the index has."""
    if not index.rows:
        return build_index(file, dialect)
    block = len(index.starts) - 1
    before = index.up_to(block * EVERY, index.offset(block))
    with file.open() as stream:
        progress = LineScan(dialect, int(index.lines[block]), index.encoding)
        return _scan_from(stream, file.size, before.size, progress, before)


def _scan_from(stream: Any, size: int, at: int, progress: LineScan, before: Index) -> Index:
    """Scan from an offset to the end, with the rows `before` it."""
    starts, lines = [before.starts], [before.lines]
    while at < size:
        data = stream.read_at(min(CHUNK, size - at), at)
        _, some_starts, some_lines = progress.run(data)
        starts.append(some_starts + at)
        lines.append(some_lines)
        at += len(data)
    return Index(
        before.rows + progress.rows, size, np.concatenate(starts), np.concatenate(lines), progress.mode == QUOTED,
        progress.encoding, progress.mode == AT_LINE,
    )  # fmt: skip
