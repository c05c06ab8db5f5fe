"""Sinks of a script, checked against their queries: the key of mode upsert, no retractions in mode append."""

from dataclasses import replace

from squallpy.base.errors import SquallError, nearest
from squallpy.catalog.sink_spec import APPEND, UPSERT, SinkSpec
from squallpy.logical.nodes import Limit, Query
from squallpy.logical.plan_properties import unique_columns
from squallpy.logical.retractions import retracting_operator


def bind_sink(sink: SinkSpec, query: Query) -> SinkSpec:
    """Check that a query's rows can be written in the mode of a sink, and complete its key.

    SQ2003 for an unknown column of the key, SQ2007 for a column that the mode adds, SQ3001 for a query that has no
    key, or takes rows back where they are appended.
    """
    if sink.mode:
        sink.check_columns(sink.mode, query.names)
    if sink.mode == APPEND and (operator := retracting_operator(query.plan)):
        message = f"mode 'append' only adds rows, and {operator}"
        raise SquallError("SQ3001", message, sink.place("mode"), "write mode 'changes' or 'upsert'")
    return replace(sink, key=_key(sink, query)) if sink.mode == UPSERT or sink.key else sink


def _key(sink: SinkSpec, query: Query) -> tuple[str, ...]:
    """Find the columns that tell the printed rows apart, as the sink names them, else as the plan knows them."""
    if sink.key is not None:
        known = {name.lower(): name for name in query.names}
        for name in sink.key:
            if name.lower() not in known:
                hint = nearest(name, query.names)
                raise SquallError("SQ2003", f'the query has no column "{name}"', sink.place("key"), hint)
        return tuple(known[name.lower()] for name in dict.fromkeys(sink.key))
    plan = query.plan
    while isinstance(plan, Limit):
        plan = plan.child
    columns = unique_columns(plan, declared=True)
    if columns is None:
        message = "mode 'upsert' needs columns that tell the rows apart, and the query selects none"
        hint = "select the columns of its GROUP BY, or of a PRIMARY KEY, or name them: key 'a, b'"
        raise SquallError("SQ3001", message, sink.place("mode"), hint)
    names = {column.id: name for column, name in zip(query.plan.output, query.names, strict=True)}
    return tuple(names[column.id] for column in columns)
