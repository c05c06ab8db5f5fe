"""SHOW and DESCRIBE: what a session has, as tables."""

from collections.abc import Sequence

import pyarrow as pa

from squallpy.base.settings import list_settings
from squallpy.catalog.catalog import ViewDefinition
from squallpy.catalog.relation import Field, Relation
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.live.definitions import Definitions, kind_of


def show(definitions: Definitions, what: str) -> pa.Table:
    """List the streams, tables, views, sinks, functions, queries or settings of a session."""
    entries = [*definitions.catalog.entries.values()]
    if what == "settings":
        options = list_settings()
        return _table(
            name=[o.name for o in options], type=[o.type for o in options], meaning=[o.meaning for o in options]
        )
    if what in ("streams", "tables"):
        found = [e for e in entries if isinstance(e, Relation) and not e.is_implied and e.stream == (what == "streams")]
        columns = [", ".join(f"{f.name} {f.type}" for f in e.fields) for e in found]
        return _table(name=[e.name for e in found], format=[e.format for e in found], columns=columns)
    if what == "functions":
        functions = definitions.catalog.functions
        return _table(name=[e.called for e in functions], declaration=[e.declaration for e in functions])
    if what == "sinks":
        sinks = [e for e in entries if isinstance(e, SinkSpec)]
        modes = [(definitions.entries.maintained[e.name.lower()].query.sink or e).mode or "" for e in sinks]
        return _table(name=[e.name for e in sinks], format=[e.format for e in sinks], mode=modes)
    if what == "views":
        views = [e for e in entries if isinstance(e, ViewDefinition)]
        return _table(
            name=[e.name for e in views], kind=[kind_of(e).lower() for e in views], query=[e.query.text for e in views]
        )
    kept = definitions.entries.maintained.values()
    kinds = ["view" if each.is_view else "sink" for each in kept]
    return _table(name=[each.name for each in kept], kind=kinds, query=[each.text.text for each in kept])


def describe(fields: Sequence[Field]) -> pa.Table:
    """List columns with their types."""
    nullable = ["YES" if field.nullable else "NO" for field in fields]
    return _table(column=[f.name for f in fields], type=[str(f.type) for f in fields], nullable=nullable)


def _table(**columns: Sequence[str]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})
