"""Streams and tables of Iceberg as sources.

open_source(relation, shared)   →   IcebergStream        the rows of a snapshot, then what each later one has appended
                                    IcebergTableSource   the rows of the last snapshot, once
"""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import Any

import pyarrow as pa
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table.snapshots import Operation, Snapshot

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, log_event
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.connectors.backoff import ask_again
from squallpy.runtime.connectors.iceberg.catalogs import IcebergTableLocation
from squallpy.runtime.connectors.table_location import NOT_FOLLOWED, one_line
from squallpy.runtime.formats.arrow_rows import fields_of
from squallpy.runtime.sources.protocol import BatchLimit, Offset, Slice, Source
from squallpy.runtime.sources.source import cut

MOST = 100  # snapshots of a batch


def infer(relation: Relation) -> tuple[tuple[Field, ...], tuple[str, ...]]:
    """Infer the columns of a relation that lists none."""
    location = IcebergTableLocation.of(relation.options)
    return fields_of(location.table(location.patience).schema().as_arrow()), relation.primary_key


def open_source(relation: Relation, shared: dict[Any, Any]) -> Source:
    """Open a stream or a table; SQ4001, SQ8010."""
    location = IcebergTableLocation.of(relation.options)
    return IcebergStream(location) if relation.stream else IcebergTableSource(location)


class _IcebergRows(Source):
    """Rows of an Iceberg table.

    NB: the numbers of snapshots are random and above 2⁵³: in offsets they are texts.
    """

    is_counted = False

    def __init__(self, location: IcebergTableLocation) -> None:
        self.location, self._table = location, location.table(location.patience)
        self._known = self._table.schema()

    @property
    def schema(self) -> pa.Schema:
        return self._known.as_arrow()

    def initial(self) -> Offset:
        """Return the place before the rows of the last snapshot."""
        last = self._table.current_snapshot()
        return {"snapshot": str(last.snapshot_id), "read": 0} if last else {"snapshot": "", "read": 1}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        return {**start, "read": 1}

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[Slice]:
        first, last = start["snapshot"], int(end["snapshot"])
        at = self._table.snapshot_by_id(last)
        if at is None:
            raise self.location.gone(f"snapshot {last}")

        def list_files() -> list[FileScanTask]:
            if not start["read"]:
                return list(self._table.scan(snapshot_id=last).plan_files())
            after = int(first) if first else None
            scan = self._table.incremental_append_scan(from_snapshot_id_exclusive=after, to_snapshot_id_inclusive=last)
            return list(scan.plan_files())

        try:
            found = ask_again(list_files, self.location.is_passing, self.location)
        except ValueError as error:
            if "equality delete" in str(error):
                message = f"{self.location} has equality deletes, which are not supported"
                raise SquallError(
                    "SQ3001", message, hint="rewrite its data files: CALL system.rewrite_data_files(…)"
                ) from None
            raise self.location.gone(f"snapshots {first} to {last}") from None
        except OSError:
            raise self.location.gone(f"snapshots {first} to {last}") from None
        files = sorted(found, key=lambda each: each.file.file_path)
        ends = [*(cut(0, len(files), number, tasks) for number in range(tasks)), len(files)]
        return [FileSlice(self.location, last, self._known, tuple(files[a:b])) for a, b in pairwise(ends) if a < b]


class IcebergStream(_IcebergRows):
    """A table whose snapshots are followed: what they append is read, one that takes rows away is refused."""

    def __init__(self, location: IcebergTableLocation) -> None:
        super().__init__(location)
        self._ends = self._is_away = False

    def begin(self, folder: str | None, ends: bool) -> None:
        self._ends = ends

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        if not start["read"]:
            return {**start, "read": 1}
        if not self._ends:
            self._look()
        last, rows = start["snapshot"], 0
        for number, snapshot in enumerate(self._since(start["snapshot"])):
            if limit.rows is not None and (number == MOST or rows >= limit.rows):
                break
            operation = snapshot.summary.operation if snapshot.summary else None
            if operation in (Operation.OVERWRITE, Operation.DELETE):
                if last != start["snapshot"]:
                    break  # NB: what comes before is read
                message = f"snapshot {snapshot.snapshot_id} of {self.location.name} deletes or updates rows"
                hint = "a stream reads what is appended: begin anew, or read it as a TABLE"
                raise SquallError(NOT_FOLLOWED, message, hint=hint)
            last = str(snapshot.snapshot_id)
            rows += int(snapshot.summary["added-records"] or 0) if snapshot.summary else 0
        return {"snapshot": last, "read": 1}

    def committed(self, start: Offset, end: Offset) -> float | None:
        first = next(iter(self._since(start["snapshot"])), None) if start["read"] else None
        return first.timestamp_ms / 1000 if first else None

    def _look(self) -> None:
        """Look what there is now; a catalog that is away has nothing new."""
        try:
            self._table.refresh()
            if self._is_away:
                log_event(SOURCES, WARNING, "server is back", server=str(self.location))
            self._is_away = False
        except (NoSuchTableError, NoSuchNamespaceError):
            raise SquallError(NOT_FOLLOWED, f"{self.location} was dropped", hint="the batch before is whole") from None
        except Exception as error:
            if not self.location.is_passing(error):
                raise self.location.fault(error) from None
            if not self._is_away:
                log_event(SOURCES, WARNING, "server is away", server=str(self.location), reason=one_line(error))
            self._is_away = True

    def _since(self, first: str) -> list[Snapshot]:
        """List the snapshots after one, in order; SQ4009 if it is no more among those that led to the last."""
        found, at = list[Snapshot](), self._table.current_snapshot()
        while at is not None and str(at.snapshot_id) != first:
            found.append(at)
            parent = at.parent_snapshot_id
            at = None if parent is None else self._table.snapshot_by_id(parent)
            if at is None and str(parent or "") != first:
                raise self.location.gone(f"what came after snapshot {first}")
        if at is None and first and not found:
            raise self.location.gone(f"what came after snapshot {first}")
        return found[::-1]


class IcebergTableSource(_IcebergRows):
    """The rows of the snapshot that is the last when a run begins."""

    is_bounded = True


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The rows of some files of a snapshot.

    Args:
        known: The schema of the table as the run began.
    """

    location: IcebergTableLocation
    snapshot: int
    known: Schema
    files: tuple[FileScanTask, ...]

    @property
    def rows(self) -> None:
        """No number: it is known when they are read."""

    def read(self, columns: tuple[str, ...]) -> pa.Table:
        table = self.location.table(inf)
        names = [self._name(table.schema(), name) for name in columns]
        # NB: rows without columns could not be counted
        projected = self.known.select(*(names or [field.name for field in self.known.fields[:1]]))

        def read_files() -> pa.Table:
            return ArrowScan(table.metadata, table.io, projected, AlwaysTrue()).to_table(self.files)

        try:
            rows = ask_again(read_files, self.location.is_passing, self.location)
        except FileNotFoundError:
            raise self.location.gone(f"files of snapshot {self.snapshot}") from None
        return rows.select(names)

    def _name(self, now: Schema, name: str) -> str:
        """Find a column in any case; SQ4009 for one that has gone since the run began, or has another type."""
        known = self.known.find_field(name, case_sensitive=False)
        what = None
        if known.field_id not in now.field_ids:
            what = "was dropped"
        elif (found := now.find_type(known.field_id)) != known.field_type:
            what = f"was {known.field_type} and is {found}"
        if what:
            message = f'the column "{name}" of {self.location.name} {what}'
            raise SquallError(NOT_FOLLOWED, message, hint="the batch before is whole")
        return known.name
