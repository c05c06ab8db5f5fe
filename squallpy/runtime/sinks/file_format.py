"""Tables as csv, JSON lines or parquet, compressed or not.

file_format("json", "gzip").suffix    →    json.gz
"""

import io
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import IO, cast

import pyarrow as pa

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.catalog.sink_spec import FORMATS
from squallpy.runtime.formats.csv_writer import csv_header, csv_rows
from squallpy.runtime.formats.json_lines import json_rows

_SUFFIXES = {f".{name}": name for name in FORMATS} | {".jsonl": "json", ".ndjson": "json", ".pq": "parquet"}
_COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format of files; `compression` None is none, of parquet its default."""

    name: str
    compression: str | None = None

    @classmethod
    def of(cls, path: str, name: str | None = None, compression: str | None = None) -> "FileFormat":
        """Choose what is given, else by the path's suffixes, else csv; SQ7003 for a format that files cannot have."""
        if name is not None and name not in FORMATS:
            raise SquallError("SQ7003", f"--format {name} is not for files", hint=nearest(name, FORMATS))
        *inner, last = ["", *(suffix.lower() for suffix in PurePath(path).suffixes)]
        compressed = _COMPRESSED.get(last)
        name = name or _SUFFIXES.get(inner[-1] if compressed and inner else last, "csv")
        return cls(name, compression or (compressed if name != "parquet" else None))

    @property
    def suffix(self) -> str:
        """The suffix of its files."""
        suffixes = {codec: suffix for suffix, codec in _COMPRESSED.items()}
        return self.name + ("" if self.name == "parquet" else suffixes.get(self.compression or "", ""))

    def write(self, rows: pa.Table, out: IO[bytes], added: int = 0) -> None:
        """Write a table.

        Args:
            added: how many columns, from the first, are not the result's own.
        """
        if self.name == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(rows, out, compression=self.compression or "snappy")
            return
        with self._packed(out) as packed:
            packed.writelines(_lines(rows, self.name, added))

    def merge(self, parts: Iterable[IO[bytes]], schema: pa.Schema, out: IO[bytes]) -> None:
        """Write the rows of several files as one."""
        if self.name == "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetWriter(out, schema, compression=self.compression or "snappy") as writer:
                for part in parts:
                    writer.write_table(pq.read_table(io.BytesIO(part.read())))
            return
        header = csv_header(schema) if self.name == "csv" else b""
        with self._packed(out) as packed:
            packed.write(header)
            for part in parts:
                packed.write(self._unpacked(part)[len(header) :])

    def _packed(self, out: IO[bytes]) -> IO[bytes]:
        """Compress what is written; closing it leaves the file open."""
        kept = cast(IO[bytes], _Kept(out))
        return kept if self._codec is None else cast(IO[bytes], pa.CompressedOutputStream(kept, self._codec))

    def _unpacked(self, part: IO[bytes]) -> bytes:
        data = part.read()
        return data if self._codec is None else pa.CompressedInputStream(pa.BufferReader(data), self._codec).read()

    @property
    def _codec(self) -> str | None:
        return None if self.compression in (None, "none") else self.compression


class _Kept(io.RawIOBase):
    """A file that stays open when what writes to it is closed."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        """Write all of it."""
        self._out.write(cast(bytes, data))
        return len(memoryview(cast(bytes, data)))


def _lines(table: pa.Table, format: str, added: int) -> Iterator[bytes]:
    if format == "csv":
        yield csv_header(table.schema)
        yield from csv_rows(table, added)
    else:
        yield from json_rows(table)
