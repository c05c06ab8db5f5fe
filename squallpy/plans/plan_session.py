"""Sessions of plans put together by hand: the same compiler, executors and checkpoints as those of a script."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.relation import Relation
from squallpy.logical.bind import Script
from squallpy.logical.nodes import Query
from squallpy.plans.data_source import DataSource
from squallpy.script_session import RunOptions, ScriptSession

if TYPE_CHECKING:
    import pyarrow as pa

    from squallpy.plans.sink import Sink  # NB: for types only: `Sink.explain` makes a session of itself


class PlanSession(ScriptSession):
    """A session whose queries are the plans of sinks, which run together."""

    def __init__(self, sinks: "Sequence[Sink]", settings: Settings | None = None, path: Path | None = None) -> None:
        file = path or Path(sinks[0].site.file)
        super().__init__(file, _with_components(settings or Settings(), sinks), text="")
        self._sinks = tuple(sinks)

    @cached_property
    def script(self) -> Script:
        """The relations and queries of the plans."""
        catalog = Catalog()
        for relation in _relations(self._sinks):
            catalog.add(relation)
        queries = tuple(sink.query(catalog, number) for number, sink in enumerate(self._sinks, 1))
        return Script(catalog.relations, queries, notices=tuple(catalog.notices))

    @property
    def tasks(self) -> Mapping[str, int]:
        return _tasks(self._sinks)

    def answers(self, backend: str) -> list["pa.Table"]:
        """Run the plans until their input ends, and return the rows of each."""
        found = _Answers()
        self.run(RunOptions(backend=backend), found)
        return found.tables


def _with_components(settings: Settings, sinks: "Sequence[Sink]") -> Settings:
    """Set what is pinned; there are at least as many partitions, and readers, as the widest component uses."""
    components = tuple(each for sink in sinks for each in sink.components())
    partitions = max(settings.partitions, *(each.parallelism for each in components if each.inputs), 1)
    splits = max(settings.splits, *_tasks(sinks).values(), 1)
    return replace(settings, components=components, partitions=partitions, splits=splits)


def _tasks(sinks: "Sequence[Sink]") -> dict[str, int]:
    """Find the tasks that read each stream, where they are pinned."""
    sources = (each for sink in sinks for each in sink.walk() if isinstance(each, DataSource))
    return {each.relation.name: each.parallelism for each in sources if each.parallelism}


class _Answers:
    """A taker of final results."""

    def __init__(self) -> None:
        self.tables: list[pa.Table] = []

    def begin(self, query: Query, schema: "pa.Schema", batches: int | None) -> None: ...

    def batch(self, number: int, deletes: Any, inserts: Any) -> None: ...

    def final(self, table: "pa.Table") -> None:
        self.tables.append(table)

    def finish(self, stopped: bool) -> None: ...


def _relations(sinks: "Sequence[Sink]") -> list[Relation]:
    """Collect the relations that plans read; SQ2007 for two of one name that differ."""
    found = dict[str, Relation]()
    for source in (each for sink in sinks for each in sink.walk() if isinstance(each, DataSource)):
        known = found.setdefault(source.relation.name.lower(), source.relation)
        if replace(known, span=None) != replace(source.relation, span=None):
            message = f'"{known.name}" is declared otherwise at {known.span}'
            raise SquallError("SQ2007", message, source.relation.span, "name one of them otherwise")
    return list(found.values())
