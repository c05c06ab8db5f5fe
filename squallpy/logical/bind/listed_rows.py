"""Rows that a query lists, each of columns of the row that they are made of: columns become rows.

    r LATERAL VIEW EXPLODE(ARRAY(x, y)) t AS v       →   v = CASE id WHEN 0 THEN x ELSE y END over r, RANGE(2)
    r LATERAL VIEW STACK(2, 'x', x, 'y', y) t AS n, v
    r, LATERAL (VALUES ('x', x), ('y', y)) t (n, v)
    SELECT INLINE(ARRAY(STRUCT('x' AS n, x AS v), STRUCT('y', y))) FROM r
    SELECT EXPLODE(MAP('x', x, 'y', y)) FROM r
    SELECT JSON_TUPLE(j, 'x', 'y') AS (x, y) FROM r, one row of GET_JSON_OBJECT(j, '$.x') and GET_JSON_OBJECT(j, '$.y')

They are as many for each row, so what changes is linear: a row that comes or goes is joined to the numbers of the
list, which never change.
"""

from collections.abc import Sequence

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import INT, unify
from squallpy.frontend.dialect import is_call
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.literals import read_text
from squallpy.logical.bind.nested_constructors import bind_alike, entries_of, fields_of, items_of
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Column, Expr, Literal
from squallpy.logical.nodes import Node, Project

LISTS = ("STACK", "INLINE", "INLINE_OUTER", "JSON_TUPLE")
"""Generators of rows of several columns."""

MOST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class ListedRows:
    """Rows as they are written, and the names of their columns unless the query gives others."""

    rows: tuple[tuple[exp.Expr, ...], ...]
    names: tuple[str, ...]


def listed_rows(ctx: Context, node: exp.Expr) -> ListedRows | None:
    """Return the rows that a call in FROM or a VALUES lists; None if it makes rows of something else.

    Raises:
        SquallError: SQ2005, rows of different lengths; SQ3001, a key of a MAP that is no constant, a huge list.
    """
    found = _listed(ctx, node)
    if found:
        _check_count(ctx, node, len(found.rows))
    return found


def _check_count(ctx: Context, node: exp.Expr, rows: int) -> None:
    if rows > MOST_ROWS:
        raise ctx.error("SQ3001", f"a list of {rows:,} rows is not supported, {MOST_ROWS:,} are the most", node)


def _listed(ctx: Context, node: exp.Expr) -> ListedRows | None:
    if isinstance(node, exp.Values):
        return _of_rows(ctx, node, [tuple(row.expressions) for row in node.expressions])
    name = "UNNEST" if isinstance(node, exp.Unnest) else node.name.upper()
    if name == "STACK":
        return _stacked(ctx, node)
    if name == "JSON_TUPLE":
        return _fields_of_json(ctx, node)
    of = node.expressions[0] if len(node.expressions) == 1 else None
    if name.startswith("INLINE"):
        structs = items_of(of)
        listed = structs and all(is_call(each, "STRUCT", "NAMED_STRUCT") for each in structs)
        return _of_structs(ctx, node, structs) if listed else None
    if is_call(of, "MAP") and not name.startswith("POS"):
        return ListedRows(tuple(entries_of(ctx, of)), ("key", "value"))
    values = items_of(of)
    if not values:
        return None
    return ListedRows(tuple((value,) for value in values), ("col",))


def _stacked(ctx: Context, node: exp.Expr) -> ListedRows:
    """Cut the values of STACK(n, …) into n rows; the last is filled up with NULL."""
    count, *values = node.expressions or [None]
    if not isinstance(count, exp.Literal) or not count.name.isdigit() or not int(count.name) or not values:
        raise ctx.error("SQ2005", "STACK takes a positive number of rows, then their values", node)
    _check_count(ctx, node, int(count.name))  # before so many are filled up
    width = -(-len(values) // int(count.name))
    filled = [*values, *(exp.Null() for _ in range(width * int(count.name) - len(values)))]
    rows = tuple(tuple(filled[at : at + width]) for at in range(0, len(filled), width))
    return ListedRows(rows, tuple(f"col{i}" for i in range(width)))


def _fields_of_json(ctx: Context, node: exp.Expr) -> ListedRows:
    """List one row of some fields of JSON, which are named by constants."""
    text, *names = node.expressions or [None]
    fields = [read_text(name) for name in names]
    if text is None or not all(fields) or any("'" in field for field in fields) or not fields:
        raise ctx.error("SQ2005", "JSON_TUPLE takes a text, and constant names of its fields", node)
    paths = (exp.Literal.string(f"$['{field}']") for field in fields)
    row = tuple(exp.Anonymous(this="GET_JSON_OBJECT", expressions=[text.copy(), path]) for path in paths)
    return ListedRows((row,), tuple(f"c{i}" for i in range(len(row))))


def _of_structs(ctx: Context, node: exp.Expr, structs: Sequence[exp.Expr]) -> ListedRows:
    """Take the fields of STRUCTs; the first names the columns."""
    fields = [fields_of(ctx, struct) for struct in structs]
    rows = [tuple(value for _, value in each) for each in fields]
    return _of_rows(ctx, node, rows, tuple(name for name, _ in fields[0]))


def _of_rows(
    ctx: Context, node: exp.Expr, rows: Sequence[tuple[exp.Expr, ...]], names: tuple[str, ...] = ()
) -> ListedRows:
    """Check that rows are of one length, some of which is there."""
    widths = sorted({len(row) for row in rows})
    if len(widths) != 1 or not widths[0]:
        raise ctx.error("SQ2005", f"rows of {' and '.join(map(str, widths))} columns in one list", node)
    return ListedRows(tuple(rows), names or tuple(f"col{i}" for i in range(1, widths[0] + 1)))


def list_columns(s: Scalars, listed: ListedRows, number: Column, names: Sequence[str]) -> list[tuple[Column, Expr]]:
    """Bind the columns of listed rows: each is chosen by the row's number, and has the common type of its values."""
    made = list[tuple[Column, Expr]]()
    for name, nodes in zip(names, zip(*listed.rows, strict=True), strict=True):
        values, type = bind_alike(s, nodes)
        if type is None:
            types = [value.type for value in values]
            odd = next(i for i in range(len(types)) if unify(types[: i + 1]) is None)
            message = f'{unify(types[:odd])} and {types[odd]} in column "{name}" of one list'
            raise SquallError("SQ2005", message, s.ctx.span(nodes[odd]), "CAST one of them")
        *first, last = values
        tests = (call("=", number, Literal(i, INT)) for i in range(len(first)))
        chosen = case(list(zip(tests, first, strict=True)), last) if first else last
        made.append((s.ctx.column(name, type, any(value.nullable for value in values)), chosen))
    return made


def with_columns(plan: Node, made: Sequence[tuple[Column, Expr]]) -> Node:
    """Extend a plan by columns."""
    return Project(plan, (*((c, c) for c in plan.output), *made))
