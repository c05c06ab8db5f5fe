"""The local executor as an engine of step tests: rows from memory, state in a checkpoint."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from squallpy.catalog.relation import Relation
from squallpy.runtime.local import DurableLocalExecutor
from squallpy.runtime.pipeline import Input
from squallpy.runtime.result import Changes
from squallpy.runtime.sources.conform import column_type
from squallpy.runtime.state.place import open_place
from squallpy.session import Compiled, Session, fingerprint
from squallpy.testing.oracle import MULT


@dataclass(slots=True)
class Rows:
    """A source in memory that grows."""

    relation: Relation
    table: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        fields = [(f.name, column_type(f.type)) for f in self.relation.fields]
        self.table = pa.schema([*fields, (MULT, pa.int64())]).empty_table()

    @property
    def rows(self) -> int:
        return len(self.table)

    def add(self, rows: pa.Table) -> None:
        if MULT not in rows.column_names:
            rows = rows.append_column(MULT, pa.array([1] * len(rows), pa.int64()))
        self.table = pa.concat_tables([self.table, rows.select(self.table.column_names).cast(self.table.schema)])

    def read(self, start: int, stop: int, columns: tuple[str, ...]) -> pa.Table:
        return self.table.slice(start, stop - start).select([*columns, *([MULT] if self.relation.op else [])])


@dataclass(slots=True)
class Pushed:
    """The batches so far, in place of a replay."""

    ends: list[dict[str, int]] = field(default_factory=list)

    @property
    def batches(self) -> int:
        return len(self.ends)

    def ranges(self, batch: int) -> dict[str, tuple[int, int]]:
        before = self.ends[batch - 1] if batch else {}
        return {name: (before.get(name, 0), end) for name, end in self.ends[batch].items()}


class LocalEngine:
    """Runs steps in this process, its state in a folder."""

    def __init__(self, optimizer: bool = True) -> None:
        self._optimizer = optimizer

    def start(self, script: str, checkpoint: Path, tables: dict[str, pa.Table]) -> None:
        from squallpy.base.settings import Settings

        path = checkpoint / "steps.sql"
        path.write_text(script)
        session = Session(path, Settings(optimizer=self._optimizer))
        (query,) = session.script.queries
        self._folder = checkpoint
        self._sources = {r.name: Rows(r) for r in session.script.relations.values()}
        for name, rows in tables.items():
            self._sources[name].add(rows)
        self._replay = Pushed()
        self._compiled: Compiled = session.compile(query, 1, {name: s.rows for name, s in self._sources.items()})
        self._open()

    def _open(self) -> None:
        input = Input(cast(Any, self._sources), cast(Any, self._replay))
        place = open_place(self._folder / "state", str(self._folder / "local"), fingerprint(self._compiled, 1), 1 << 20)
        self._executor = DurableLocalExecutor(self._compiled.plan, input, place)

    def push(self, rows: dict[str, pa.Table]) -> pa.Table:
        for name, some in rows.items():
            self._sources[name].add(some)
        self._replay.ends.append({name: source.rows for name, source in self._sources.items()})
        changes, _ = self._executor.step()
        self._executor.commit()
        assert changes is not None
        return signed(changes)

    def result(self) -> pa.Table:
        return self._executor.final()

    def restart(self) -> None:
        """What is not in the checkpoint is lost."""
        del self._executor
        shutil.rmtree(self._folder / "local", ignore_errors=True)
        self._open()


def signed(changes: Changes) -> pa.Table:
    """Deletes and inserts as one table with `__mult`."""
    parts = ((changes.deletes, -1), (changes.inserts, 1))
    return pa.concat_tables([t.append_column(MULT, pa.array([m] * len(t), pa.int64())) for t, m in parts])
