"""Rows as programs have them → Arrow tables in the types of a stream: Arrow, pandas, polars, lists of dicts.

pushed_table(relation, [{"id": 1, "price": "2.50"}], "+")   →   a table of the stream's columns, and its op column
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError, nearest, shorten
from squallpy.catalog.relation import MULT, Relation
from squallpy.logical.expressions import show_day_to_second
from squallpy.runtime.formats.change_operations import DELETES, INSERTS
from squallpy.runtime.sources.foreign_source import ArrowPart, check_rows, names_asked
from squallpy.runtime.sources.source import FileSource


def pushed_table(relation: Relation, rows: Any, op: str) -> pa.Table:
    """Make rows a table of what a stream reads; a mistake in any row is told before one of them is pushed.

    Args:
        op: '+', '-', or the name of the column that has the operation of each row.
    """
    table = arrow_table(rows, f"pushed to {relation.name}")
    table = _with_operations(relation, table, op)
    names = {name.lower(): name for name in table.column_names}
    wanted = names_asked(relation.fields, relation)
    if missing := [name for name in wanted if name.lower() not in names]:
        message = f'the rows pushed to {relation.name} have no column "{missing[0]}"'
        raise SquallError("SQ4002", message, hint=nearest(missing[0], table.column_names))
    table = table.select([names[name.lower()] for name in wanted]).rename_columns([*wanted])
    part = ArrowPart(f"the rows pushed to {relation.name}", table)
    columns = tuple(field.name for field in relation.fields)
    check_rows(relation, part, columns)
    rows = FileSource(relation, (part,)).read(0, len(table), columns)
    told = _operation_column(relation)
    if told is None:
        return rows.select([*columns])
    words = pc.if_else(pc.greater(rows[MULT], 0), "+", "-")
    return rows.select([*columns]).append_column(told, words)


def arrow_table(rows: Any, where: str) -> pa.Table:
    """Make rows an Arrow table; SQ4004 for values that are none, SQ7011 for what is no table.

    Args:
        where: Whom they are for: "pushed to items".
    """
    match rows:
        case pa.Table():
            return rows
        case pa.RecordBatch():
            return pa.Table.from_batches([rows])
    try:
        if hasattr(rows, "to_arrow"):  # polars
            return rows.to_arrow()
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
        if type(rows).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(rows, preserve_index=False)
        if isinstance(rows, Mapping):
            return pa.table({str(name): _column(values) for name, values in rows.items()})
        if (
            isinstance(rows, Sequence)
            and not isinstance(rows, str | bytes)
            and all(isinstance(r, Mapping) for r in rows)
        ):
            names = dict.fromkeys(name for row in rows for name in row)
            return pa.table({str(name): _column([row.get(name) for row in rows]) for name in names})
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        why = " ".join(str(error).split())
        raise SquallError("SQ4004", f"the rows {where} are no table: {shorten(why)}") from None
    message = f"a {type(rows).__name__} was {where}"
    raise SquallError("SQ7011", message, hint="give an Arrow, pandas or polars table, or a list of dicts")


def _column(values: Any) -> Any:
    """Make values an Arrow array: as texts, which become the stream's type, where they are of several types."""
    if not isinstance(values, list | tuple):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else _text(value) for value in values])


def _text(value: Any) -> str:
    return show_day_to_second(value // timedelta(microseconds=1)) if isinstance(value, timedelta) else str(value)


def _operation_column(relation: Relation) -> str | None:
    """Name the column that tells inserts from deletes, where the stream has one."""
    return relation.op or (relation.tombstone.name if relation.tombstone else None)


def _with_operations(relation: Relation, table: pa.Table, op: str) -> pa.Table:
    """Add the column that tells inserts from deletes, where the stream has one."""
    told = _operation_column(relation)
    word = op.strip().lower()
    if word not in INSERTS and word not in DELETES:
        known = [name for name in table.column_names if name.lower() == op.lower()]
        if not known:
            hint = nearest(op, table.column_names) or "'+', '-' or the name of a column"
            raise SquallError("SQ2003", f'the rows pushed to {relation.name} have no column "{op}"', hint=hint)
        if told is None:
            message = f"{relation.name} has no op column, so that its rows are inserts"
            raise SquallError("SQ4005", message, hint="declare it with OPTIONS (op 'op')")
        return table if told == known[0] else table.append_column(told, table.column(known[0]))
    if told is None:
        if word in DELETES:
            message = f"{relation.name} has no op column, so that nothing is deleted from it"
            raise SquallError("SQ4005", message, hint="declare it with OPTIONS (op 'op')")
        return table
    if any(name.lower() == told.lower() for name in table.column_names):
        return table
    return table.append_column(told, pa.array(["+" if word in INSERTS else "-"] * len(table), pa.string()))
