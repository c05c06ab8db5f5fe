"""Parquet by row group, decoded once: the columns that are read, in the relation's types.

The last decoded row group is cached, so that successive batches within one do not decode it again, and the next one is
decoded ahead of time (row_groups.py).
"""

import io
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial, reduce
from itertools import accumulate
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import Field
from squallpy.runtime.formats.arrow_rows import decode_rows
from squallpy.runtime.formats.blocked_file import BlockedFile
from squallpy.runtime.formats.change_operations import columns_of_change
from squallpy.runtime.formats.checksum import add_checksums, checksum
from squallpy.runtime.formats.counted_table import concat_tables, table_without_columns
from squallpy.runtime.formats.file_rows import FileRows
from squallpy.runtime.formats.relation_files import File, reason
from squallpy.runtime.formats.row_groups import RowGroup, RowGroupCache
from squallpy.runtime.formats.type_conversion import Problem, is_text

_FEW = 16 << 10  # bytes of a dictionary, as it is stored, of a text with few values


class ParquetPart(BlockedFile):
    """A Parquet file, whose blocks are its row groups."""

    @staticmethod
    def open(file: File) -> "ParquetPart":
        return ParquetPart(file, (0, *accumulate(_layout(file)[1])))

    @property
    def _schema(self) -> pa.Schema:
        return _layout(self.file)[0]

    def read(
        self, start: int, stop: int, fields: tuple[Field, ...], op: str | None, with_checksum: bool = False
    ) -> FileRows:
        """Read rows start..stop.

        Checksums cover the columns of the row groups whose first row is among them, and the footer with the first of
        all.
        """
        tables: list[pa.Table] = []
        wrong: dict[int, Problem] = {}
        sums, images = dict[str, int](), 0
        at, key = start, (self.file, fields, op, with_checksum)
        decode = partial(_decode, *key)
        while at < stop or not tables:
            group = max(0, min(bisect_right(self.ends, at) - 1, len(self.ends) - 2))
            first, last = (self.ends[group], self.ends[group + 1]) if self.rows else (0, 0)
            rows = _decoded.get(key, group, decode)
            end = min(stop, last)
            tables.append(rows.table.slice(at - first, max(0, end - at)))
            wrong.update({first + r - start: p for r, p in rows.wrong.items() if at <= first + r < end})
            images += 0 if rows.images is None else int(rows.images[at - first : end - first].sum())
            if at == first < end:
                sums |= {name: add_checksums(sums.get(name, 0), sum) for name, sum in rows.checksums.items()}
            at = max(end, at + (last == 0))
        if group + 2 < len(self.ends):
            _decoded.look_ahead(key, (start, stop), (group, first, last), decode)
        return FileRows(concat_tables(tables), wrong, sums, images)

    def checksum(self, rows: int, names: Sequence[str]) -> int:
        """Compute the checksum of the footer and of these columns, for the row groups of the first rows."""
        sum = 0
        for group in range(bisect_left(self.ends[:-1], min(rows, self.rows))):
            if self.ends[group] < self.ends[group + 1]:
                sum = reduce(add_checksums, ColumnChunks.of(self.file, group, names).checksums().values(), sum)
        return sum


_decoded = (
    RowGroupCache()
)  # NB: a cache of this process; entries never change, as the file's size and time are in the key


def _decode(
    file: File, fields: tuple[Field, ...], op: str | None, with_checksum: bool, group: int, is_ahead: bool = False
) -> RowGroup:
    """Decode a row group; `is_ahead`: in the thread for that, which has decoders of its own."""
    opened = _open(file)
    schema, rows = opened.schema_arrow, opened.metadata.row_group(group).num_rows if opened.num_row_groups else 0
    there = {name.lower(): name for name in schema.names}
    changes = columns_of_change(op)
    wanted = dict.fromkeys(name.lower() for name in (*(f.path[0] for f in fields), *changes))
    names = [there[name] for name in wanted if name in there]
    file.check()
    try:
        chunks = ColumnChunks.of(file, group, names) if with_checksum and rows else None
        raw = table_without_columns(rows)
        if names and rows:
            if chunks:
                source = _reader(chunks.file(), opened.metadata, _few_valued(file))
            else:
                source = _open_decoder(file, is_ahead)
            raw = source.read_row_group(group, columns=names, use_threads=False)
        raw = _fix_int96(file, group, raw, is_ahead) if raw.num_columns else raw
    except DAMAGED as error:
        raise SquallError("SQ4001", f"cannot read {file.display_name}: {reason(error)}") from None
    if len(raw) != rows:
        raise SquallError(
            "SQ4001", f"cannot read {file.display_name}: row group {group} has {len(raw)} rows and not {rows}"
        )
    found = decode_rows(raw, fields, op)
    return RowGroup(found.table, found.wrong, chunks.checksums() if chunks else {}, found.images)


def _fix_int96(file: File, group: int, raw: pa.Table, is_ahead: bool) -> pa.Table:
    """Replace INT96 times that overflowed 64-bit microseconds by the last time, which is beyond all years."""
    columns = map(_open(file).schema.column, range(len(_open(file).schema)))
    wide = [c.path for c in columns if c.physical_type == "INT96" and c.path in raw.column_names]
    if wide:
        seconds = _open(file, "s", is_ahead).read_row_group(group, columns=wide, use_threads=False)
        for name in wide:
            times = raw.column(name)
            is_whole = pc.equal(pc.floor_temporal(times, unit="second").cast(pa.timestamp("s")), seconds.column(name))
            last = pa.scalar(2**63 - 1, times.type)
            raw = raw.set_column(raw.schema.get_field_index(name), name, pc.if_else(is_whole, times, last))
    return raw


class ColumnChunks:
    """The bytes of columns of a row group, and of the footer with the first group, read once to be summed and
    decoded."""

    def __init__(self, file: File, ranges: Mapping[str, list[tuple[int, int]]]) -> None:
        self._file = file
        with file.open() as source:
            self._read = {name: [(at, source.read_at(size, at)) for at, size in some] for name, some in ranges.items()}

    @staticmethod
    def of(file: File, group: int, names: Sequence[str]) -> "ColumnChunks":
        """Read the chunks of these columns, as far as the file has them."""
        about, wanted = _open(file).metadata, {name.lower() for name in names}
        ranges: dict[str, list[tuple[int, int]]] = {}
        if not any(about.row_group(g).num_rows for g in range(group)):
            size = about.serialized_size + 8  # with its length and the magic word
            ranges[""] = [(file.size - size, size)]
        for i in range(about.num_columns):
            chunk = about.row_group(group).column(i)
            name = str(chunk.path_in_schema)
            if not {name.lower(), name.partition(".")[0].lower()}.isdisjoint(wanted):
                starts = [at for at in (chunk.dictionary_page_offset, chunk.data_page_offset) if at]
                ranges.setdefault(name, []).append((min(starts), chunk.total_compressed_size))
        return ColumnChunks(file, ranges)

    def checksums(self) -> dict[str, int]:
        """Compute checksums by column; '' is the footer."""
        return {
            name: reduce(add_checksums, (checksum(data, at) for at, data in some)) for name, some in self._read.items()
        }

    def file(self) -> pa.NativeFile:
        """Open a file that serves these bytes from memory and reads others on demand."""
        known = sorted((at, memoryview(data)) for some in self._read.values() for at, data in some)
        return pa.PythonFile(_CachedFile(self._file, known), mode="r")


class _CachedFile(io.RawIOBase):
    """A file with some ranges in memory."""

    def __init__(self, file: File, known: list[tuple[int, memoryview]]) -> None:
        self._file, self._known, self._at = file, known, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.size}[whence]
        return self._at

    def read(self, size: int = -1) -> Any:
        at, size = self._at, min(size, self._file.size - self._at) if size >= 0 else self._file.size - self._at
        number = bisect_right(self._known, at, key=itemgetter(0)) - 1
        start, data = self._known[number] if number >= 0 else (0, memoryview(b""))
        if at + size > start + len(data):
            with self._file.open() as source:
                found = source.read_at(size, at)
        else:
            found = data[at - start : at - start + size]
        self._at += len(found)
        return found


DAMAGED = (OSError, pa.ArrowException, OverflowError, ValueError, UnicodeDecodeError, MemoryError)
"""The exceptions that Arrow raises for a damaged file."""


def _reader(
    source: Any, about: Any = None, dictionaries: Sequence[str] | None = None, int96: str = "us"
) -> pq.ParquetFile:
    # NB: INT96 as nanoseconds in 64 bits would cover the years 1677 to 2262 only
    return pq.ParquetFile(source, metadata=about, read_dictionary=dictionaries, coerce_int96_timestamp_unit=int96)


@lru_cache(maxsize=64)
def _few_valued(file: File) -> tuple[str, ...]:
    """List the texts of a file that have few values, by the dictionaries of its first and last row group.

    Arrow reads these as numbers and their dictionary, which is decoded in less than half of the time that texts take
    one by one; where a dictionary has most of the texts, that takes longer.
    """
    about, schema = _open(file).metadata, _layout(file)[0]
    ends = [about.row_group(group) for group in {0, about.num_row_groups - 1}]
    found = [name for name, type in zip(schema.names, schema.types, strict=True) if is_text(type)]
    places = {about.row_group(0).column(i).path_in_schema: i for i in range(about.num_columns)}
    return tuple(name for name in found if all(_has_few(end.column(places[name])) for end in ends))


def _has_few(chunk: Any) -> bool:
    """True if a column of a row group has a small dictionary of texts."""
    begin = chunk.dictionary_page_offset
    return chunk.physical_type == "BYTE_ARRAY" and begin is not None and 0 < chunk.data_page_offset - begin <= _FEW


@lru_cache(maxsize=64)
def _open_decoder(file: File, is_ahead: bool) -> pq.ParquetFile:
    return _reader(file.open(), _open(file).metadata, _few_valued(file))


@lru_cache(maxsize=1 << 14)
def _layout(file: File) -> tuple[pa.Schema, tuple[int, ...]]:
    """Read the schema of a file, and the number of rows of each row group."""
    if not file.size:
        return pa.schema([]), ()
    opened = _open(file)
    groups = (opened.metadata.row_group(g).num_rows for g in range(opened.num_row_groups))
    return opened.schema_arrow, tuple(groups)


@lru_cache(maxsize=64)
def _open(file: File, int96: str = "us", is_ahead: bool = False) -> pq.ParquetFile:
    """Open a file; `is_ahead`: for the thread that decodes ahead of time, as two threads cannot read by one object."""
    try:
        return _reader(file.open(), int96=int96)
    except DAMAGED as error:
        raise SquallError("SQ4001", f"{file.display_name} is not a parquet file: {reason(error)}") from None
