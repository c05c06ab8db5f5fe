"""Expressions over the rows of one table, as a SELECT list writes them, computed row by row.

project_rows("SELECT size * size FROM t", "t", rows)   →   one vector, of the type that SQL gives it
"""

import pyarrow as pa

from squallpy.base.types import Type
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.relation import Relation
from squallpy.frontend.query import SelectText
from squallpy.live.pushed_tables import pushed_table
from squallpy.live.snapshot_query import SNAPSHOT
from squallpy.logical.bind import bind_top
from squallpy.logical.nodes import Node, Project, Scan
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, from_arrow, full
from squallpy.runtime.formats.arrow_rows import fields_of


def project_rows(text: SelectText, name: str, rows: pa.Table) -> list[tuple[Type, Vec]]:
    """Compute the columns of a SELECT from one table, without other clauses, in the order of its rows.

    Raises:
        SquallError: SQ4002 for a column without a SQL type, SQ4004 for a value that does not fit; and those of queries.
    """
    relation = Relation(name, fields_of(rows.schema), False, SNAPSHOT)
    table = pushed_table(relation, rows, "+")
    plan = bind_top(Catalog({name.lower(): relation}), text, 1, fold_constant).plan
    frame = _frame(plan, table)
    return [(column.type, full(frame[column.id], column.type, len(table))) for column in plan.output]


def _frame(plan: Node, table: pa.Table) -> VectorFrame:
    """Compute the columns of a plan that reads one table."""
    match plan:
        case Scan(columns=columns):
            values = (table[column.name].combine_chunks() for column in columns)
            vectors = {c.id: from_arrow(array, c.type) for c, array in zip(columns, values, strict=True)}
            return VectorFrame(len(table), vectors)
        case Project(child=child, items=items):
            frame = _frame(child, table)
            return VectorFrame(len(table), {column.id: compile_expression(item)(frame) for column, item in items})
    raise AssertionError(plan)
