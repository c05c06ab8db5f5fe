"""Aggregates that are called: by name, with FILTER, and WITHIN GROUP."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from squallpy.base.errors import Span, SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import DAY_TO_SECOND, DOUBLE, INT, NULL, VARCHAR, Shape, nested_type
from squallpy.frontend.unsupported import AGGREGATES as UNSUPPORTED
from squallpy.functions.aggregate.entries import (
    Aggregate,
    ArgExtreme,
    Derived,
    Direct,
    Listing,
    Paired,
    Percentile,
    Positional,
)
from squallpy.functions.registry import AGGREGATE_OPERATIONS, AGGREGATES
from squallpy.functions.type_rules import Mismatch
from squallpy.logical.aggregate_calls import SortKey, SortKeys
from squallpy.logical.bind.aggregates.collector import Aggregation
from squallpy.logical.bind.aggregates.expansions import DERIVED, PAIRED, interpolate, pair_values
from squallpy.logical.bind.datetime.intervals import micros_of, rounded_interval, to_value
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.grouping_sets import grouping_sets
from squallpy.logical.bind.nested_constructors import json_of
from squallpy.logical.bind.scope import Outer
from squallpy.logical.coercion import coerce
from squallpy.logical.expression_builders import call, case, coalesce
from squallpy.logical.expressions import Cast, Expr, Literal, conjunction, not_null
from squallpy.logical.nested_order import in_order, nested_extreme

Called = exp.Anonymous | exp.WithinGroup  # f(q), f(q) WITHIN GROUP (ORDER BY x)
MAX_DENOMINATOR = 10**9  # of a share, whose products with counts have room then
NUMBERS = {1: "one argument", 2: "two arguments"}


def aggregate_name(node: Called) -> str:
    return (node.this if isinstance(node, exp.WithinGroup) else node).name.upper()


def within_group(s: Scalars, node: exp.WithinGroup, name: str) -> tuple[list[exp.Expr], bool]:
    """Read name(q) WITHIN GROUP (ORDER BY x): its arguments, x first, and whether the order is descending."""
    s.ctx.refuse_other_args(node, "this", "expression")
    s.ctx.refuse_other_args(node.expression, "expressions")
    key, *more = node.expression.expressions
    if more:
        raise s.ctx.error("SQ2005", f"{name} takes one key in its ORDER BY", more[0])
    s.ctx.refuse_other_args(key, "this", "desc", "nulls_first")  # NULLs are no values
    return [key.this, *node.this.expressions], bool(key.args.get("desc"))


def read_fraction(s: Scalars, name: str, node: exp.Expr) -> Fraction:
    """Bind a constant from 0 to 1, as the nearest fraction with a small denominator: 1 - 0.25 → 3/4, 1 / 3 → 1/3."""
    bound = s.ctx.fold(s.inner().bind(node))
    value = bound.value if isinstance(bound, Literal) and bound.type.is_numeric else None
    if value is None or not 0 <= value <= 10**bound.type.scale:
        raise s.ctx.error("SQ2005", f"{name} needs a constant share from 0 to 1", node)
    fraction = Fraction(str(value)) / int(10**bound.type.scale)
    return fraction.limit_denominator(MAX_DENOMINATOR)


def bind_outer_aggregate(s: Scalars, name: str, node: Called, clause: exp.Expr | None) -> Expr | None:
    """Bind an aggregate of a query around this one, which is that of all that it reads; None for one of this query."""
    parts = (node, clause) if clause is not None else (node,)
    if any(part.find(exp.Query) for part in parts):
        return None
    read, ways, scope = [c for part in parts for c in part.find_all(exp.Column)], list[Outer](), s.scope
    while read and not any(scope.has(s.ctx, c) for c in read if not isinstance(c.this, exp.Star)):
        if scope.outer is None:
            return None  # which nobody knows
        ways.append(scope.outer)
        scope = scope.outer.scope
    if not ways or ways[-1].clause is None:
        return None
    value = aggregate(ways[-1].clause, name, node, clause)
    for outer in reversed(ways):
        value = outer.outer_reference(s.ctx, value)
    return value


def aggregate(s: Scalars, name: str, node: Called, clause: exp.Expr | None = None, order: SortKeys = ()) -> Expr:
    """Bind an aggregate, of the rows of its FILTER.

    COUNT(*) FILTER (WHERE p) → COUNT(CASE WHEN p THEN 1 END)

    Args:
        order: That of its rows, which a list is in that names no other.
    """
    outside = bind_outer_aggregate(s, name, node, clause)
    if outside is not None:
        return outside
    aggregation = s.aggregation
    if aggregation is None:
        hint = {"WHERE": "use HAVING", "an aggregate": "take the inner one from a subquery in FROM"}.get(s.clause, "")
        raise SquallError("SQ2009", f"{name} is an aggregate and cannot stand in {s.clause}", head(s, node), hint)
    entry, args = AGGREGATES[name], arguments(s, name, node)
    values = [s.inner().bind(each) for each in args.values]
    own, keys, condition, listing = values[0] if values else None, sort_keys(s, args.order), None, None
    if isinstance(entry.form, Listing):
        in_own_order = bool(args.distinct or entry.form.is_distinct)
        listing = listing_of(s, name, entry.form, args, values, node, keys or (() if in_own_order else order))
    with s.ctx.at(node):
        values = [to_value(value) for value in values]
    if clause is not None:
        condition = replace(s.inner(), clause="FILTER").condition(clause)
        values = [case([(condition, value)], Literal(None, NULL)) for value in values or [Literal(1, INT)]]
    is_distinct = args.distinct is not None or (isinstance(entry.form, Direct | Listing) and entry.form.is_distinct)
    distinct = tuple(dict.fromkeys(values)) if is_distinct else ()
    match entry.form:
        case Paired():
            return pair(s, aggregation, entry, name, node, args, values)
        case ArgExtreme(function, skips_nulls):
            return arg_extreme(aggregation, function, skips_nulls, values[0], values[-1], args.descending)
        case Positional(operation) if not keys:
            return aggregation.column(operation, values[0])
        case Positional() as form:
            return first_value(aggregation, form, values[0], keys, args.skips_nulls, condition)
        case Percentile(is_interpolated):
            return collect_percentile(aggregation, name, is_interpolated, values[0], distinct, args)
        case Listing(is_array=is_array):
            assert listing is not None
            (value,), (separator, listed) = values, listing
            keys = tuple((value if key == own else key, descending, nulls) for key, descending, nulls in listed)
            if is_array:
                return collect_array(aggregation, value, distinct, separator, keys)
            return aggregation.collect_texts(value, distinct, separator, keys)
        case Derived():
            try:
                return DERIVED[entry.name](lambda function, of: aggregation.column(function, of, distinct), *values)
            except Mismatch as error:
                raise Mismatch(name, (value.type for value in values), error.hint) from None
        case Direct("sum" | "avg" as function) if values[0].type == DAY_TO_SECOND:
            micros = micros_of(values[0])
            return rounded_interval(aggregation.column(function, micros, distinct and (micros,)))
        case Direct(function):
            expected = AGGREGATE_OPERATIONS[function].argument
            if expected is not None and (values[0].type.is_numeric or values[0].type == NULL):
                values = [coerce(values[0], expected)]
                distinct = distinct and tuple(values)
            if entry.name in ("MIN", "MAX") and values[0].type.nested:
                return nested_extreme(lambda value: aggregation.column(function, value), values[0])
            return aggregation.column(function, none_null(values), distinct)


@dataclass(frozen=True, slots=True)
class AggregateArguments:
    """Arguments of a call of an aggregate.

    Args:
        order: The keys of an ORDER BY behind the last argument; only some aggregates depend on it.
        skips_nulls: The call says IGNORE NULLS.
    """

    values: list[exp.Expr]
    distinct: exp.Distinct | None
    fraction: Fraction
    descending: bool
    order: tuple[exp.Expr, ...] = ()
    separator: exp.Expr | None = None
    skips_nulls: bool = False


def arguments(s: Scalars, name: str, node: Called) -> AggregateArguments:
    """Read the arguments of a call, as many as there are to be; COUNT(*) has none."""
    entry = AGGREGATES[name]
    if isinstance(entry.form, Listing):
        return of_list(s, name, node)
    descending, expressions = False, node.expressions
    if isinstance(node, exp.WithinGroup):
        expressions, descending = within_group(s, node, name)
    elif entry.must_be_within_group:
        raise SquallError("SQ2009", f"{name} needs WITHIN GROUP", head(s, node), "write WITHIN GROUP (ORDER BY …)")
    expressions, order = split_order(s, expressions)
    skips_nulls = False
    if entry.takes_null_mark and expressions:
        expressions, skips_nulls = split_null_mark(s, name, expressions)
    first, more = (expressions[0], expressions[1:]) if expressions else (None, [])
    distinct = first if isinstance(first, exp.Distinct) else None
    if distinct:
        s.ctx.refuse_other_args(distinct, "expressions")
    args = [*(distinct.expressions if distinct else expressions[:1]), *more]
    if name == "COUNT":
        args = [as_struct(arg) for arg in args]
    if entry.has_accuracy and len(args) == entry.min_arguments + 1:
        accuracy = args.pop()  # which an exact answer has
        if not isinstance(s.ctx.fold(s.inner().bind(accuracy)), Literal):
            raise s.ctx.error("SQ2005", f"{name} needs a constant accuracy", accuracy)
    if len(args) < entry.min_arguments or (entry.max_arguments is not None and len(args) > entry.min_arguments):
        expected = "one argument" if entry.min_arguments == 1 else "two arguments"
        raise SquallError("SQ2005", f"{name} takes {expected}, not {len(args)}", head(s, node))
    fraction = (
        read_fraction(s, name, args.pop()) if isinstance(entry.form, Percentile) and len(args) == 2 else Fraction(1, 2)
    )
    if name == "COUNT" and len(args) == 1 and isinstance(args[0], exp.Star) and not distinct:
        s.ctx.refuse_other_args(args.pop())
    return AggregateArguments(args, distinct, fraction, descending, order, skips_nulls=skips_nulls)


def split_order(s: Scalars, args: list[exp.Expr]) -> tuple[list[exp.Expr], tuple[exp.Expr, ...]]:
    """Split the arguments of a call from the keys of an ORDER BY behind the last: SUM(x ORDER BY y)."""
    match args:
        case [*most, exp.Order(this=exp.Expr() as last) as order]:
            s.ctx.refuse_other_args(order, "this", "expressions")
            return [*most, last], tuple(order.expressions)
        case [*most, exp.IgnoreNulls() | exp.RespectNulls() as mark] if isinstance(order := mark.this, exp.Order):
            marked = type(mark)(this=order.this.copy())  # FIRST(x ORDER BY y IGNORE NULLS)
            marked.parent = mark.parent
            return [*most, marked], tuple(order.expressions)
    return args, ()


def as_struct(node: exp.Expr) -> exp.Expr:
    """Write a row value as a STRUCT, which counts even if all of it is NULL: (a, b)  →  NAMED_STRUCT('1', a, '2', b)"""
    if not isinstance(node, exp.Tuple):
        return node
    fields = [(exp.Literal.string(str(n)), part.copy()) for n, part in enumerate(node.expressions, 1)]
    made = exp.Anonymous(this="NAMED_STRUCT", expressions=[part for field in fields for part in field])
    made.parent = node.parent
    return made


def split_null_mark(s: Scalars, name: str, args: list[exp.Expr]) -> tuple[list[exp.Expr], bool]:
    """Split arguments from the mark that NULLs are ignored: FIRST(x IGNORE NULLS), FIRST(x, TRUE)."""
    value, *more = args
    skips_nulls = isinstance(value, exp.IgnoreNulls)
    if isinstance(value, exp.IgnoreNulls | exp.RespectNulls):
        value = value.this
    if len(more) == 1 and isinstance(AGGREGATES[name].form, Positional):
        if not isinstance(more[0], exp.Boolean):
            raise s.ctx.error("SQ2005", f"{name} takes TRUE or FALSE: are NULLs ignored?", more[0])
        skips_nulls, more = bool(more[0].this), []
    return [value, *more], skips_nulls


def bind_ignore_nulls(s: Scalars, node: exp.IgnoreNulls | exp.RespectNulls) -> Expr:
    """Bind FIRST(x) IGNORE NULLS, as FIRST(x IGNORE NULLS)."""
    made = node.this.copy()
    made.parent = node.parent
    call = made.this if isinstance(made, exp.Filter) else made
    if not (isinstance(call, exp.Anonymous) and call.expressions and takes_null_mark(aggregate_name(call))):
        raise s.ctx.refuse(node)
    value = call.expressions[0]
    value.replace(type(node)(this=value.copy()))
    return s.bind(made)


def takes_null_mark(name: str) -> bool:
    """True if IGNORE NULLS may follow an aggregate of this name."""
    return name in AGGREGATES and AGGREGATES[name].takes_null_mark


def of_list(s: Scalars, name: str, node: Called) -> AggregateArguments:
    """Read the arguments of a list.

    LISTAGG(DISTINCT x, ', ') WITHIN GROUP (ORDER BY y, z), STRING_AGG(x, ', ' ORDER BY y)
    """
    call, order = (node.this, node.expression) if isinstance(node, exp.WithinGroup) else (node, None)
    args, keys = split_order(s, call.expressions)
    if order is not None and keys:
        raise s.ctx.error("SQ2005", f"{name} has two orders", keys[0])
    if args and isinstance(args[0], exp.RespectNulls):
        raise s.ctx.refuse(args[0])  # a list has no NULLs
    args = split_null_mark(s, name, args)[0] if args else []
    distinct = args[0] if args and isinstance(args[0], exp.Distinct) else None
    if distinct:
        s.ctx.refuse_other_args(distinct, "expressions")
        args[:1] = distinct.expressions
    form = AGGREGATES[name].form
    is_array = isinstance(form, Listing) and form.is_array
    if is_array and len(args) != 1:
        raise SquallError("SQ2005", f"{name} takes one argument, not {len(args)}", head(s, node))
    if not 1 <= len(args) <= 2:
        message = f"{name} takes a value and a separator, not {len(args)} arguments"
        raise SquallError("SQ2005", message, head(s, node))
    keys = tuple(order.expressions) if order else keys
    return AggregateArguments(args[:1], distinct, Fraction(0), False, keys, args[1] if len(args) > 1 else None)


def sort_keys(s: Scalars, order: tuple[exp.Expr, ...]) -> SortKeys:
    """Bind the keys of an ORDER BY within an aggregate."""
    keys = list[SortKey]()
    for key in order:
        s.ctx.refuse_other_args(key, "this", "desc", "nulls_first")
        with s.ctx.at(key.this):
            (by,) = in_order([s.inner().bind_value(key.this)])
        keys.append((by, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))))
    return tuple(keys)


def listing_of(
    s: Scalars, name: str, form: Listing, args: AggregateArguments, values: list[Expr], node: Called, order: SortKeys
) -> tuple[str, SortKeys]:
    """Bind the text between values of a list, and its order; a value that is the text of a key is listed as that."""
    between = Literal(form.separator, VARCHAR) if args.separator is None else s.ctx.fold(s.inner().bind(args.separator))
    if not isinstance(between, Literal) or between.type not in (VARCHAR, NULL):
        raise s.ctx.error("SQ2005", f"{name} needs a constant text between values", args.separator or node)
    (value,) = values
    if order and value == coerce(order[0][0], VARCHAR):
        value = values[0] = order[0][0]
    if (args.distinct or form.is_distinct) and any(key != value for key, _, _ in order):
        message = f"{name} of DISTINCT values can be in their own order only"
        raise s.ctx.error("SQ2005", message, args.order[0], "ORDER BY what is listed")
    return between.value or "", order


def collect_array(
    aggregation: Aggregation, value: Expr, distinct: tuple[Expr, ...], separator: str, order: SortKeys
) -> Expr:
    """Collect values as an ARRAY, which is held as JSON, as those of sources are; without a value it is empty."""
    if value.type == NULL:
        value, distinct = coerce(value, VARCHAR), distinct and (coerce(value, VARCHAR),)
    texts = aggregation.collect_texts(json_of(value), distinct, separator, order or ((value, False, False),))
    held = call("||", call("||", Literal("[", VARCHAR), coalesce(texts, Literal("", VARCHAR))), Literal("]", VARCHAR))
    return Cast(held, nested_type(Shape.ARRAY, (value.type,)))


def pair(
    s: Scalars,
    aggregation: Aggregation,
    entry: Aggregate,
    name: str,
    node: Called,
    args: AggregateArguments,
    values: list[Expr],
) -> Expr:
    """Bind CORR(y, x) and other aggregates of two numbers."""
    if args.distinct:
        raise s.ctx.refuse(args.distinct)
    if not all(value.type.is_numeric or value.type == NULL for value in values):
        types = ", ".join(str(value.type) for value in values)
        raise SquallError("SQ2005", f"{name} does not take ({types})", head(s, node))
    y, x = (coerce(value, DOUBLE) if value.type == NULL else value for value in values)
    return PAIRED[entry.name](pair_values(aggregation.column, y, x))


def arg_extreme(
    aggregation: Aggregation, function: str, skips_nulls: bool, value: Expr, by: Expr, descending: bool
) -> Expr:
    """Collect MAX_BY(x, y); ARG_MAX(x, y), of rows that have an x; MODE(x), the first one in its order."""
    if function == "mode":
        return aggregation.arg_extreme(function, value, value if descending else None, descending)
    if skips_nulls and value.nullable:
        by = case([(not_null(value), by)], Literal(None, by.type))
    return aggregation.arg_extreme(function, value, in_order([by])[0])


def first_value(
    aggregation: Aggregation, form: Positional, value: Expr, order: SortKeys, skips_nulls: bool, condition: Expr | None
) -> Expr:
    """Collect FIRST(x ORDER BY y), or LAST; rows that do not count, as FILTER or IGNORE NULLS say, come last."""
    if form.is_last:
        order = tuple((key, not descending, not nulls_first) for key, descending, nulls_first in order)
    tests = [condition] if condition is not None else []
    tests += [not_null(value)] if (skips_nulls or form.skips_nulls) and value.nullable else []
    if tests:
        counts = case([(conjunction(tests), Literal(0, INT))], Literal(1, INT))
        order = ((counts, False, False), *order)
    return aggregation.first_value(value, order)


def collect_percentile(
    aggregation: Aggregation,
    name: str,
    is_interpolated: bool,
    value: Expr,
    distinct: tuple[Expr, ...],
    args: AggregateArguments,
) -> Expr:
    """Collect the value at a share of all, one of theirs or one between two."""
    fraction, descending = args.fraction, args.descending
    if value.type == NULL:
        value, distinct = coerce(value, DOUBLE), distinct and (coerce(value, DOUBLE),)
    if value.type.nested:
        raise SquallError("SQ2005", f"{name} does not take {value.type}")
    if not is_interpolated:
        return aggregation.column("left" if descending else "reaches", value, distinct, fraction)
    if value.type == DAY_TO_SECOND:
        micros = micros_of(value)
        return rounded_interval(collect_percentile(aggregation, name, True, micros, distinct and (micros,), args))
    if not value.type.is_numeric:
        hint = "PERCENTILE_DISC takes all that has an order"
        raise SquallError("SQ2005", f"{name} does not take {value.type}", hint=hint)
    if value.type.is_wide and not distinct:
        value = coerce(value, DOUBLE)
    fraction = 1 - fraction if descending else fraction
    count = aggregation.column("count", value, distinct)
    return interpolate(lambda function: aggregation.column(function, value, distinct, fraction), count, fraction)


def none_null(values: list[Expr]) -> Expr | None:
    """Build what COUNT(a, b) counts: rows in which neither is NULL."""
    if len(values) < 2:
        return values[0] if values else None
    return case([(conjunction(map(not_null, values)), Literal(1, INT))], Literal(None, NULL))


def bind_grouping(s: Scalars, node: exp.Anonymous) -> Expr:
    """Bind GROUPING(a, b) to 2 · GROUPING(a) + GROUPING(b): 1 for what a row of ROLLUP, CUBE … is not grouped by.

    GROUPING_ID() without arguments takes all keys.
    """
    if s.aggregation is None:
        raise SquallError("SQ2009", f"GROUPING cannot stand in {s.clause}", head(s, node))
    of = node.expressions or (every_key(s, node) if node.name.upper() == "GROUPING_ID" else None)
    if of == []:
        return Literal(0, INT)
    if not of:
        raise SquallError("SQ2005", f"{node.name.upper()} takes 1 or more arguments, not 0", head(s, node))
    bits: list[Expr] = [s.aggregation.collect_grouping(s.inner().bind(arg), arg) for arg in of]
    total = bits[0]
    for bit in bits[1:]:
        total = call("+", call("*", total, Literal(2, INT)), bit)
    return total


def every_key(s: Scalars, node: exp.Anonymous) -> list[exp.Expr] | None:
    """List what GROUPING_ID() is of: all that the query around it is grouped by; None without a GROUP BY."""
    select = node.find_ancestor(exp.Select)
    clause = select.args.get("group") if select else None
    return list(dict.fromkeys(key for keys in grouping_sets(s.ctx, clause) for key in keys)) if clause else None


def bind_filter(s: Scalars, node: exp.Filter) -> Expr:
    """Bind aggregate FILTER (WHERE condition)."""
    inner = node.this
    if not isinstance(inner, exp.Anonymous | exp.WithinGroup) or aggregate_name(inner) not in AGGREGATES:
        raise SquallError("SQ2009", "FILTER goes with an aggregate", s.ctx.query.keyword(node, "FILTER"))
    if isinstance(inner, exp.WithinGroup):
        check_ordered(s, inner)
    return aggregate(s, aggregate_name(inner), inner, node.expression.this)


def bind_within_group(s: Scalars, node: exp.WithinGroup) -> Expr:
    """Bind aggregate WITHIN GROUP (ORDER BY x)."""
    check_ordered(s, node)
    return aggregate(s, aggregate_name(node), node)


def check_ordered(s: Scalars, node: exp.WithinGroup) -> None:
    """Refuse WITHIN GROUP by SQ3001 for what is known to go with it, and by SQ2009 for what does not."""
    name = aggregate_name(node)
    if name in UNSUPPORTED:
        raise SquallError("SQ3001", f"{name} is not supported yet", head(s, node), UNSUPPORTED[name])
    if name not in AGGREGATES or not AGGREGATES[name].may_be_within_group:
        *most, last = (known for known, entry in AGGREGATES.items() if entry.may_be_within_group)
        message = f"WITHIN GROUP goes with {', '.join(most)} and {last}"
        raise SquallError("SQ2009", message, s.ctx.query.keyword(node, "WITHIN"))


def head(s: Scalars, node: Called) -> Span:
    """Find the place of the function's name."""
    return s.ctx.query.find_token(node.this if isinstance(node, exp.WithinGroup) else node)
