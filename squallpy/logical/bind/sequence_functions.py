"""SEQUENCE, RANGE and GENERATE_SERIES: ARRAYs, of which none is made where its values become rows (`explode.py`).

SEQUENCE(a, b)                           →  SEQUENCE(a, b, CASE WHEN a <= b THEN 1 ELSE -1 END)
GENERATE_SERIES(d, e, INTERVAL 1 MONTH)  →  SEQUENCE(d, e, 1, 0, 0): months, days and microseconds
"""

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DATE, INT, NULL, TIMESTAMP, VARCHAR, Shape, nested_type, unify
from squallpy.catalog.relation import CONSTANT, Field, Relation, Series
from squallpy.functions.generators import SERIES
from squallpy.logical.bind.aggregates.calls import head
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime import intervals
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.coercion import coerce, coerce_exactly
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Call, Cast, Column, Expr, Literal
from squallpy.logical.nodes import Scan

COLUMNS = {"RANGE": "id", "GENERATE_SERIES": "generate_series"}  # what a table function calls its column
ONE, MINUS_ONE, ZERO = Literal(1, INT), Literal(-1, INT), Literal(0, INT)
MANY = "CAST it to TIMESTAMP for a step of hours"


def is_series(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.upper() in SERIES


def series(s: Scalars, node: exp.Anonymous, keeps_empty: bool) -> tuple[Expr, Series]:
    """Bind a series: its start, stop and step as one expression, and how rows are made of it."""
    name, nodes = node.name.upper(), list(node.expressions)
    closed, strict = SERIES[name]
    if not (1 if name == "RANGE" else 2) <= len(nodes) <= 3:
        least = "1 to 3" if name == "RANGE" else "2 to 3"
        raise SquallError("SQ2005", f"{name} takes {least} arguments, not {len(nodes)}", head(s, node))
    bounds = [s.bind(each) for each in nodes[:2]]
    step = s.bind(nodes[2]) if len(nodes) == 3 else None
    if len(nodes) == 1:
        bounds = [ZERO, *bounds]
    else:
        bounds = s.as_moments(bounds, nodes[:2])
    type = unify([bound.type for bound in bounds])
    type = BIGINT if type == NULL or (name != "SEQUENCE" and type == INT) else type
    is_moments = type in (DATE, TIMESTAMP)
    types = ", ".join(str(e.type) for e in (*bounds, *([step] if step is not None else [])))
    if type is None or not (type.is_integer or is_moments):
        hint = "it is of integers, DATEs or TIMESTAMPs"
        raise SquallError("SQ2005", f"{name} does not take ({types})", head(s, node), hint)
    if is_moments and name != "SEQUENCE":
        type = TIMESTAMP
    if step is not None and step.type == NULL:
        step = Literal(None, INT) if not is_moments else intervals.length(Literal(None, INT), ZERO, ZERO)
    if step is not None and not (step.type.is_interval if is_moments else step.type.is_integer):
        hint = "the step is an INTERVAL" if is_moments else "the step is a whole number"
        raise SquallError("SQ2005", f"{name} does not take ({types})", head(s, node), hint)
    if type.is_integer and step is not None:
        type = unify([type, step.type]) or type
    start, stop = (coerce_exactly(bound, type) for bound in bounds)
    if step is None and is_moments and name != "SEQUENCE":
        raise SquallError("SQ2005", f"{name} of moments needs a step", head(s, node), "write INTERVAL 1 DAY")
    if step is None:
        unit: Expr = ONE if not strict else case([(call("<=", start, stop), ONE)], MINUS_ONE)
        steps: tuple[Expr, ...] = (ZERO, unit, ZERO) if is_moments else (unit,)
    else:
        steps = intervals.parts(step) if is_moments else (step,)
    if type == DATE and not intervals.is_zero(steps[2]):
        raise SquallError("SQ2005", "the step from DATE to DATE is of whole days", s.ctx.span(nodes[2]), MANY)
    return call("sequence", start, stop, *(coerce(part, BIGINT) for part in steps)), Series(
        name, closed, strict, keeps_empty
    )


def series_array(s: Scalars, node: exp.Anonymous) -> Expr:
    """Bind a series as an ARRAY of its values."""
    value, made = series(s, node, keeps_empty=False)
    assert isinstance(value, Call)
    array = call("series_array", Literal(made.function, VARCHAR), *value.args)
    return Cast(array, nested_type(Shape.ARRAY, (value.type,)))


def one_row(ctx: Context) -> Scan:
    """Scan the relation that has one row, for what reads no other."""
    name = "one row"
    ctx.catalog.declare_implied(Relation(name, (Field("zero", INT, False),), False, CONSTANT))
    return Scan(ctx.catalog.relations[name], name, (ctx.column("zero", INT, False),))


def from_zero(value: Expr, zero: Column) -> Expr:
    """Rewrite a constant series as one of the row whose column is 0, so that it is a column's."""
    start, *others = value.args  # type: ignore[union-attr]
    moved = {DATE: "add_days", TIMESTAMP: "add_micros"}.get(start.type, "+")
    return call("sequence", coerce_exactly(call(moved, start, zero), start.type), *others)
