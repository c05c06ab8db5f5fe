"""Streams and tables of Delta as sources.

open_source(relation, shared)   →   DeltaStream   the rows of a version, then what each later one has changed
                                    DeltaTableSource   the rows of the last version, once
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, log_event
from squallpy.base.records import dataclass
from squallpy.catalog.relation import OPERATION, Field, Relation
from squallpy.runtime.connectors.backoff import ask_again, is_store_away
from squallpy.runtime.connectors.delta.delta_log import FEED, DeltaTableLocation, version_range
from squallpy.runtime.connectors.table_location import NOT_FOLLOWED, one_line
from squallpy.runtime.formats.arrow_rows import fields_of
from squallpy.runtime.formats.counted_table import concat_tables
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Slice, Source
from squallpy.runtime.sources.source import cut

MOST = 100  # versions of a batch
TYPE, VERSION = "_change_type", "_commit_version"
COMES = ("insert", "update_postimage")


def infer(relation: Relation) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """Infer the columns of a relation that lists none."""
    return fields_of(_schema(DeltaTableLocation.of(relation.options))), relation.primary_key


def open_source(relation: Relation, shared: dict[Any, Any]) -> Source:
    """Open a stream or a table; SQ4001, SQ4009."""
    location = DeltaTableLocation.of(relation.options)
    if not relation.stream:
        return DeltaTableSource(location)
    follows = relation.options.get("readchangefeed") == "true"
    table = location.table(location.patience)
    if follows and table.metadata().configuration.get(FEED) != "true":
        message = f"{location} has no change data feed"
        hint = f"run ALTER TABLE delta.`{location.path}` SET TBLPROPERTIES ({FEED} = true);"
        raise SquallError(NOT_FOLLOWED, message, hint=hint)
    first = relation.options.get("startingversion")
    return DeltaStream(location, follows, None if first is None else int(first))


class _DeltaRows(Source):
    """Rows of a Delta table."""

    is_counted = False

    def __init__(self, location: DeltaTableLocation) -> None:
        self.location, self._table = location, location.table(location.patience)
        self._known = _schema(location)

    def _files(self, version: int) -> list[str]:
        """List the files of a version, in one order."""
        return sorted(each.path for each in _dataset(self.location, version).get_fragments())

    def _slices(self, version: int, files: Sequence[str], tasks: int, told: bool) -> "list[Slice]":
        ends = [*(cut(0, len(files), number, tasks) for number in range(tasks)), len(files)]
        return [FileSlice(self.location, version, tuple(files[a:b]), told) for a, b in pairwise(ends) if a < b]


class DeltaStream(_DeltaRows):
    """A table whose versions are followed.

    Args:
        follows: Rows that go are told by the change data feed; else only rows that are appended are read.
        first: The version whose changes are read first; None: the rows that are there come before.
    """

    def __init__(self, location: DeltaTableLocation, follows: bool, first: int | None) -> None:
        super().__init__(location)
        self._follows, self._first, self._is_away = follows, first, False
        self._last: int | None = None
        self._added = dict[int, tuple[str, ...]]()

    @property
    def schema(self) -> pa.Schema:
        return self._known.append(pa.field(OPERATION, pa.int64())) if self._follows else self._known

    @property
    def waits_for(self) -> str:
        return str(self.location) if self._is_away else ""

    def begin(self, folder: str | None, ends: bool) -> None:
        self._last = self._table.version() if ends else None

    def initial(self) -> Offset:
        """Return the place before the first rows: those of a version, or the changes behind the one before."""
        if self._first is not None:
            if self._first > (newest := self._table.version()) + 1:
                message = f"startingVersion is {self._first}, and the newest version of {self.location} is {newest}"
                raise SquallError(NOT_FOLLOWED, message, hint="name one that there is, or the next")
            return {"version": self._first - 1, "read": 1}
        return {"version": self._table.version(), "read": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        if not start["read"]:
            return {"version": start["version"], "read": 1}
        last = self._newest() if self._last is None else self._last
        last = last if limit.rows is None else min(last, start["version"] + MOST)
        if last <= start["version"]:
            return start
        if not self._follows:
            self._added |= self.location.added(self._table, start["version"] + 1, last)
        return {"version": last, "read": 1}

    def _newest(self) -> int:
        """Look for the newest version; a storage that is away has nothing new."""
        try:
            self._table.update_incremental()
        except (DeltaError, OSError) as error:
            if not is_store_away(error):
                raise self.location.fault(error) from None
            if not self._is_away:
                log_event(SOURCES, WARNING, "server is away", server=str(self.location), reason=one_line(error))
            self._is_away = True
        else:
            if self._is_away:
                log_event(SOURCES, WARNING, "server is back", server=str(self.location))
            self._is_away = False
        return self._table.version()

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        if not start["read"]:
            return self._slices(start["version"], self._files(start["version"]), tasks, self._follows)
        first, last = start["version"] + 1, end["version"]
        if self._follows:
            ends = [first + cut(0, last + 1 - first, number, tasks) for number in range(tasks)]
            return [FeedSlice(self.location, a, b - 1) for a, b in pairwise([*ends, last + 1]) if a < b]
        missing = [version for version in range(first, last + 1) if version not in self._added]
        if missing:
            self._added |= self.location.added(self._table, first, last)
        files = [file for version in range(first, last + 1) for file in self._added[version]]
        return self._slices(last, files, tasks, False)

    def commit(self, end: Offset) -> None:
        self._added = {version: files for version, files in self._added.items() if version > end["version"]}


class DeltaTableSource(_DeltaRows):
    """The rows of the version that is the last when a run begins."""

    is_bounded = True

    @property
    def schema(self) -> pa.Schema:
        return self._known

    def initial(self) -> Offset:
        return {"version": -1}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        return {"version": self._table.version()}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        return self._slices(end["version"], self._files(end["version"]), tasks, False)


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The rows of some files of a version."""

    location: DeltaTableLocation
    version: int
    files: tuple[str, ...]
    is_told: bool

    @property
    def rows(self) -> None:
        """No number: it is known when they are read."""

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        dataset = _dataset(self.location, self.version)
        fragments = {each.path: each for each in dataset.get_fragments()}
        names = _names(dataset.schema.names, columns, self.location, self.version)

        def read_files() -> list[pa.Table]:
            return [fragments[file].to_table(schema=dataset.schema, columns=names) for file in self.files]

        try:
            tables = ask_again(read_files, is_store_away, self.location)
        except (KeyError, OSError):
            raise self.location.gone(version_range(self.version, self.version)) from None
        found = concat_tables(tables)
        return found.append_column(OPERATION, pa.array(np.ones(len(found), np.int64))) if self.is_told else found


@dataclass(frozen=True, slots=True)
class FeedSlice:
    """Changes of some versions, as the change data feed tells them."""

    location: DeltaTableLocation
    first: int
    last: int

    @property
    def rows(self) -> None:
        """No number: it is known when they are read."""

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        table = self.location.version(self.last)
        names = _names([f.name for f in table.schema().fields], columns, self.location, self.last)

        def read_feed() -> pa.Table:
            return pa.table(table.load_cdf(self.first, self.last, columns=[*names, TYPE, VERSION]))

        try:
            feed = ask_again(read_feed, is_store_away, self.location)
        except (DeltaError, OSError, pa.ArrowInvalid) as error:
            if "version" in str(error) or "not found" in str(error).lower():
                raise self.location.gone(version_range(self.first, self.last)) from None
            raise self.location.fault(error) from None
        feed = pa.table([_plain(column) for column in feed.columns], feed.schema.names)
        comes = pc.is_in(feed[TYPE], pa.array(COMES, feed.schema.field(TYPE).type))
        told = feed.append_column(OPERATION, pc.if_else(comes, pa.scalar(1, pa.int64()), pa.scalar(-1, pa.int64())))
        return told.sort_by([(VERSION, "ascending"), (OPERATION, "ascending")]).select([*names, OPERATION])


def _schema(location: DeltaTableLocation) -> pa.Schema:
    """Return the columns of the last version, as a run begins."""
    return _dataset(location, None, location.patience).schema


def _dataset(location: DeltaTableLocation, version: int | None, seconds: float = inf) -> Any:
    """Return a version as a dataset of Arrow, after waiting for a storage that is away; SQ3001 for features that it
    cannot read."""
    table = location.table(seconds) if version is None else location.version(version)
    try:
        return ask_again(table.to_pyarrow_dataset, is_store_away, location, seconds)
    except Exception as error:
        raise location.unread(table) or location.fault(error) from None


def _names(known: Sequence[str], wanted: Sequence[str], location: DeltaTableLocation, version: int) -> list[str]:
    """Find columns by name, in any case; SQ4009 for one that is there no more."""
    names = {name.lower(): name for name in known}
    for name in wanted:
        if name != OPERATION and name.lower() not in names:
            message = f'the column "{name}" of {location.name} is there no more in version {version}'
            raise SquallError(NOT_FOLLOWED, message, hint="the batch before is whole")
    return [names[name.lower()] for name in wanted if name != OPERATION]


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert views of strings to strings, which more of Arrow's functions know."""
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column
