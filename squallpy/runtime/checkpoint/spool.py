"""A spool: rows of a source that cannot be read twice, written before a batch reads them.

spool = SpooledSource(source, ("k", "v"), "state/spool", "r")
spool.latest({"row": 0}, limit)   →   {"row": 60}      sixty rows have come, and are in the folder
spool.commit({"row": 60})             files of rows before 60 go

    5c77f6e3-0     rows 0 … 59, as Arrow's IPC format with a checksum; in its metadata the source's offset behind them

A source is asked for more only when all that it has brought is in batches, so that a spool is no longer than what one
call brings; one to which rows are pushed has them written at once (`take`). The last file stays: by that, a run that
is resumed knows where the source was.
"""

import json
import threading
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from squallpy.runtime.checkpoint.checksummed_record import damaged_error
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.checkpoint.durable_table import read_again, read_table, write_table
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.sources.protocol import Backlog, BatchLimit, Offset, Source
from squallpy.runtime.sources.source import RowSource

_END = b"squallpy.end"


class SpooledSource(RowSource):
    """A source whose rows are numbered as they come, and kept until they are committed.

    Args:
        columns: Those that are kept.
        folder: The path or URI of a durable folder; None keeps rows in memory.
        name: That of the relation.
        is_stored: Rows are kept when they are committed, too, and can be read again.
    """

    def __init__(
        self, source: Source, columns: Sequence[str], folder: str | None, name: str, is_stored: bool = False
    ) -> None:
        self._source: Source | None = source
        self.is_stored = is_stored
        self._columns, self._folder, self._key = columns, folder, f"{zlib.crc32(name.encode()):08x}-"
        self._firsts, self._stop = list[int](), 0
        self._at: Offset | None = None
        self._held = dict[int, pa.Table]()  # by first row, where there is no folder
        self._times, self._read_to = dict[int, float](), 0
        self._lock: threading.RLock | None = threading.RLock()  # NB: rows that are pushed are written by other threads
        if folder is not None:
            self._restore()
        source.attach(self)

    def __getstate__(self) -> dict[str, Any]:
        with self._locked:
            return self.__dict__ | {"_source": None, "_lock": None, "_times": {}, "_firsts": [*self._firsts]}

    @property
    def _locked(self) -> "threading.RLock":
        assert self._lock, "tasks do not write"
        return self._lock

    @property
    def source(self) -> Source:
        assert self._source, "tasks do not ask for rows"
        return self._source

    @property
    def is_bounded(self) -> bool:
        return self.source.is_bounded

    @property
    def is_behind(self) -> bool:
        return self.source.is_behind

    @property
    def schema(self) -> pa.Schema | None:
        return self.source.schema

    @property
    def rows(self) -> int:
        return self._stop

    def check(self, columns: Sequence[str]) -> None:
        self.source.check(columns)

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        self._read_to = start["row"]
        if self._stop <= start["row"]:
            self._take(limit)
        end = super().latest(start, limit)
        self._read_to = end["row"]
        return end

    @property
    def ahead(self) -> int:
        return self._stop - self._read_to

    def take(self) -> None:
        self._take(BatchLimit())

    def committed(self, start: Offset, end: Offset) -> float | None:
        with self._locked:
            return self._since(start["row"]) if start != end else None

    def backlog(self, end: Offset) -> Backlog:
        with self._locked:
            waits, rows = self.source.backlog(end) or Backlog(0), self._stop - end["row"]
            return Backlog(rows + waits.rows, self._since(end["row"]) if rows else waits.since)

    def _since(self, row: int) -> float | None:
        """Find when a row was committed at the source, if that is known."""
        found = bisect_right(self._firsts, row) - 1
        return self._times.get(self._firsts[found]) if found >= 0 else None

    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        tables = list[pa.Table]()
        for number in range(max(0, bisect_right(self._firsts, start) - 1), len(self._firsts)):
            first = self._firsts[number]
            if first < stop:
                tables.append(self._open(first).slice(max(0, start - first), stop - max(start, first)))
        if sum(map(len, tables)) != stop - start:
            raise damaged_error(f"{self._key}{start}", self._folder or "")
        return concat_tables(tables)

    @property
    def first(self) -> int:
        """The number of the first row that is kept."""
        return self._firsts[0] if self._firsts else 0

    def commit(self, end: Offset) -> None:
        with self._locked:
            while not self.is_stored and len(self._firsts) > 1 and self._firsts[1] <= end["row"]:
                first = self._firsts.pop(0)
                self._held.pop(first, None)
                self._times.pop(first, None)
                if self._folder is not None:
                    open_durable(self._folder).delete(f"{self._key}{first}")

    def close(self) -> None:
        self.source.close()

    def delete(self) -> None:
        """Delete all that is kept: the stream is dropped."""
        for first in self._firsts:
            if self._folder is not None:
                open_durable(self._folder).delete(f"{self._key}{first}")
        self._firsts, self._held = [], {}

    def _take(self, limit: BatchLimit) -> None:
        """Take what the source has, and write it down before the source may forget it."""
        with self._locked:
            if self._at is None:
                self._at = self.source.initial()
            end = self.source.latest(self._at, limit)
            if end == self._at:
                return
            tables = [each.read(tuple(self._columns)) for each in self.source.split(self._at, end, 1)]
            wanted = {name.lower() for name in self._columns}
            rows = concat_tables(tables).combine_chunks() if tables else pa.table({})
            rows = rows.select([name for name in rows.column_names if name.lower() in wanted])
            self._add(rows, end, self.source.committed(self._at, end))
            self.source.commit(end)

    def _add(self, rows: pa.Table, end: Offset, since: float | None) -> None:
        """Add a file of rows; one without rows is replaced by the next."""
        if self._folder is None:
            self._held[self._stop] = rows
        else:
            about = {_END: json.dumps(end).encode()}
            name, told = f"{self._key}{self._stop}", rows.replace_schema_metadata(about)
            write_table(self._folder, name, told, f"spool-{self._key}")
        if self._stop not in self._firsts:
            self._firsts.append(self._stop)
        self._times |= {} if since is None else {self._stop: since}
        self._at, self._stop = end, self._stop + len(rows)

    def _open(self, first: int) -> pa.Table:
        return self._held[first] if self._folder is None else read_again(self._folder, f"{self._key}{first}")

    def _restore(self) -> None:
        """Take up the rows that an earlier run has written."""
        assert self._folder is not None
        names = open_durable(self._folder).list("")
        self._firsts = sorted(int(name[len(self._key) :]) for name in names if name.startswith(self._key))
        if self._firsts:
            last = read_table(self._folder, f"{self._key}{self._firsts[-1]}")  # NB: one without rows is replaced
            self._stop, self._at = self._firsts[-1] + len(last), json.loads(last.schema.metadata[_END])
