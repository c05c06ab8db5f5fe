"""Scalar expressions of the AST → typed expressions. One handler per class of node; any other is refused by name."""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.types import BOOLEAN, DATE, NULL, TIMESTAMP, VARCHAR, Kind, Type
from squallpy.frontend.json_arrows import in_lambda
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical import expression_builders
from squallpy.logical.bind import casts, literals, predicates
from squallpy.logical.bind.aggregates.collector import Aggregation
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime import calendar, intervals
from squallpy.logical.bind.datetime.extraction import extract
from squallpy.logical.bind.scope import Scope
from squallpy.logical.coercion import NUMBERS, cast, number_literal, read_value
from squallpy.logical.constant_folding import GROWING, LONGEST, length_of
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Call, Expr, Literal, columns, conjunction, disjunction

if TYPE_CHECKING:
    from squallpy.logical.bind.over.window_functions import WindowCalls
    from squallpy.logical.bind.subqueries import Subqueries


@dataclass(frozen=True, slots=True)
class Scalars:
    """Binds the expressions of one clause.

    `clause` is what messages call it; `aggregation` is None where aggregates make no sense, `window_calls` where window
    functions do not, `subqueries` where queries are not supported; `aliases` are the select list's names, seen before
    columns unless the column is one of `keys`, or only after them if `columns_first`; NOW() may
    stand in it if it `has_time`. `parameters` are those of the lambdas around, by their names in lower case.
    """

    ctx: Context
    scope: Scope
    clause: str
    aggregation: Aggregation | None = None
    aliases: Mapping[str, list[Expr]] = field(default_factory=dict)
    keys: frozenset[Expr] = frozenset()
    columns_first: bool = False
    subqueries: "Subqueries | None" = None
    window_calls: "WindowCalls | None" = None
    has_time: bool = False
    parameters: Mapping[str, Expr] = field(default_factory=dict)

    def bind(self, node: exp.Expr) -> Expr:
        """Bind a node to a typed expression; every error points at the node or below it."""
        if type(node) not in HANDLERS:
            raise self.ctx.refuse(node)
        handler, arguments = HANDLERS[type(node)]
        self.ctx.refuse_other_args(node, *arguments)
        with self.ctx.at(node):
            bound = handler(self, node)
            if isinstance(bound, Call) and bound.name in GROWING:
                self.check_length(bound, node.name or bound.name)
            return bound

    def check_length(self, call: Call, name: str) -> None:
        """Refuse a call whose constants make a text of more than LONGEST characters: SQ2005."""
        length = length_of(call.name, tuple(self.ctx.constant(arg) or arg for arg in call.args))
        if length > LONGEST:
            message = f"{name.upper()} to {length:,} characters is not supported"
            raise SquallError("SQ2005", message, hint=f"{LONGEST:,} are the most")

    def condition(self, node: exp.Expr) -> Expr:
        """Bind a predicate: anything that is BOOLEAN, or NULL."""
        bound = self.bind(node)
        if bound.type.kind is Kind.NULL:
            return Literal(None, BOOLEAN)
        if bound.type != BOOLEAN:
            raise self.ctx.error("SQ2005", f"{self.clause} needs a condition, this is {bound.type}", node)
        return bound

    def queries(self, node: exp.Expr) -> "Subqueries":
        """Return the subqueries of the clause; one that has none refuses a node."""
        if self.subqueries is None:
            raise self.ctx.refuse(node, QUERIES["subquery here"])
        return self.subqueries

    def inner(self) -> "Scalars":
        """Make the binder of an aggregate's arguments: columns only, no further aggregates."""
        below, aliases = self.aggregation.subqueries if self.aggregation else None, self.names_of_rows()
        return replace(
            self,
            clause="an aggregate",
            aggregation=None,
            aliases=aliases,
            subqueries=below,
            window_calls=None,
            parameters={},
        )

    def names_of_rows(self) -> dict[str, list[Expr]]:
        """Return the names that an item of SELECT reads before rows are grouped.

        An item before it that is not made of columns of FROM alone has its name, with nothing behind it.
        """
        known = {c.id for source in self.scope.sources for c in source.columns}
        known |= {c.id for c in self.scope.merged_columns.values()}
        return self.names_where(lambda expr: all(c.id in known for c in columns(expr)))

    def names_where(self, is_known: Callable[[Expr], bool]) -> dict[str, list[Expr]]:
        """Return the names that an item of SELECT reads, with nothing behind those of items that are not known yet."""
        named = self.aliases.items() if self.columns_first else ()
        return {name: exprs if all(map(is_known, exprs)) else [] for name, exprs in named}

    def comparands(self, nodes: list[exp.Expr]) -> list[Expr]:
        """Bind expressions to be compared; text constants beside a moment, a number or a BOOLEAN are read as such."""
        return self.as_numbers(self.as_moments([self.bind(node) for node in nodes], nodes), nodes)

    def as_numbers(self, values: list[Expr], nodes: list[exp.Expr]) -> list[Expr]:
        """Read text constants beside a number, a BOOLEAN or an INTERVAL as such: a = '5'"""
        beside = next((value.type for value in values if value.type.kind in READ), None)
        if beside is None:
            return values
        return [self.as_number(value, beside, node) for value, node in zip(values, nodes, strict=True)]

    def as_one_type(self, values: list[Expr], nodes: list[exp.Expr]) -> list[Expr]:
        """Read text constants that have one type with a moment, a number or a BOOLEAN as such: COALESCE(a, '0')"""
        values = self.as_moments(values, nodes)
        try:
            return self.as_numbers(values, nodes)
        except SquallError:  # a text that writes none: the types tell it better
            return values

    def as_number(self, expr: Expr, beside: Type, node: exp.Expr) -> Expr:
        """Read a text constant as the number that it writes, or a value of the type beside it; anything else stays."""
        text = self.ctx.fold(expr) if expr.type == VARCHAR else expr
        if expr.type != VARCHAR or not isinstance(text, Literal):
            return expr
        with self.ctx.at(node):
            return read_value(text, beside)

    def bind_value(self, node: exp.Expr) -> Expr:
        """Bind an expression whose value is held: an INTERVAL becomes one of DAY TO SECOND."""
        with self.ctx.at(node):
            return intervals.to_value(self.bind(node))

    def as_moments(self, values: list[Expr], nodes: list[exp.Expr]) -> list[Expr]:
        """Read text constants beside a DATE or TIMESTAMP as such, as TIMESTAMP where there are both."""
        types = {value.type for value in values if value.type.is_temporal}
        if not types:
            return values
        moment = TIMESTAMP if TIMESTAMP in types else DATE
        return [self.as_moment(value, moment, node) for value, node in zip(values, nodes, strict=True)]

    def bind_compared(self, nodes: list[exp.Expr]) -> list[Expr]:
        """Bind expressions to be compared at once: INTERVALs by their lengths."""
        return intervals.lengths(self.comparands(nodes))

    def as_moment(self, expr: Expr, moment: Type, node: exp.Expr) -> Expr:
        """Read a text constant as a DATE or TIMESTAMP; anything else stays."""
        if expr.type != VARCHAR:
            return expr
        text = self.ctx.fold(expr)
        if not isinstance(text, Literal):
            return expr
        with self.ctx.at(node):
            return cast(text, moment)


READ = (*NUMBERS, Kind.BOOLEAN, Kind.DAY_TO_SECOND)
"""Kinds of values beside which a text constant is read as one of theirs."""
Handler = Callable[[Scalars, Any], Expr]
LATER = "it names an item of SELECT with an aggregate or a window function: take it from a subquery in FROM"
HANDLERS: dict[type[exp.Expr], tuple[Handler, tuple[str, ...]]] = {}


def handles(*kinds: type[exp.Expr], args: str) -> Callable[[Handler], Handler]:
    """Register the handler of classes of nodes, with the arguments of theirs that it reads."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            HANDLERS[kind] = (handler, tuple(args.split()))
        return handler

    return register


@handles(exp.Paren, args="this")
def parenthesis(s: Scalars, node: exp.Paren) -> Expr:
    return s.bind(node.this)


@handles(exp.Column, args="this table db catalog")
def column(s: Scalars, node: exp.Column) -> Expr:
    """Bind a column, or the name of an item of the select list where the clause sees those."""
    if isinstance(node.this, exp.Star):
        raise s.ctx.refuse(node.this)
    if not node.args.get("table") and (parameter := s.parameters.get(node.name.lower())) is not None:
        return parameter
    named = [] if node.args.get("table") else s.aliases.get(node.name.lower(), [])
    if named:
        found = s.scope.find(node.name)
        wins = bool(found) if s.columns_first else len(found) == 1 and found[0] in s.keys
        if not wins:
            if any(other != named[0] for other in named):
                raise s.ctx.error("SQ2002", f'"{node.name}" names several items of SELECT', node)
            return named[0]
    if node.args.get("table") is None:
        try:
            return s.scope.resolve(s.ctx, node)
        except SquallError as error:
            if error.code != "SQ2003" or node.name.lower() not in s.aliases:
                raise
        raise s.ctx.error("SQ2003", f'"{node.name}" is not computed yet here', node, LATER)
    try:
        return s.scope.resolve(s.ctx, node)
    except SquallError as error:
        from squallpy.logical.bind.nested_values import column_of_struct  # it binds fields in turn

        if error.code in ("SQ2001", "SQ3001") and (field := column_of_struct(s, node)) is not None:
            return field
        raise


@handles(exp.Identifier, args="this quoted")
def lambda_parameter(s: Scalars, node: exp.Identifier) -> Expr:
    if (found := s.parameters.get(node.name.lower())) is None:
        raise s.ctx.error("SQ2003", f'"{node.name}" is a parameter of a lambda, which {s.clause} does not see', node)
    return found


@handles(exp.CurrentTimestamp, args="")
@handles(exp.CurrentDate, args="")
def current_moment(s: Scalars, node: exp.CurrentTimestamp | exp.CurrentDate) -> Expr:
    from squallpy.logical.bind.temporal_filters import bind_now  # it reads the clause

    return bind_now(s, node)


@handles(exp.Dot, args="this expression")
def field_of_struct(s: Scalars, node: exp.Dot) -> Expr:
    from squallpy.logical.bind.nested_values import field_of

    if not isinstance(node.expression, exp.Identifier):
        raise s.ctx.refuse(node)
    return field_of(s, s.bind(node.this), node.expression)


@handles(exp.Literal, args="this is_string")
def literal(s: Scalars, node: exp.Literal) -> Expr:
    return Literal(node.name, VARCHAR) if node.is_string else number_literal(node.name)


handles(exp.Concat, args="expressions safe coalesce")(literals.bind_adjacent_texts)


@handles(exp.Null, args="")
def null(s: Scalars, node: exp.Null) -> Expr:
    return Literal(None, NULL)


@handles(exp.Boolean, args="this")
def boolean(s: Scalars, node: exp.Boolean) -> Expr:
    return Literal(bool(node.this), BOOLEAN)


@handles(exp.Interval, args="this unit fraction_in_string")
def interval(s: Scalars, node: exp.Interval) -> Expr:
    if intervals.is_written(node):
        return intervals.interval(s.ctx, node)
    size, count = intervals.unit_of(s.ctx, node.args["unit"].name, node), s.bind(node.this)
    if not count.type.is_integer:
        raise s.ctx.error("SQ2005", f"INTERVAL takes a whole number, not {count.type}", node.this)
    return intervals.length(*(intervals.product(calendar.number(part), count) for part in size))


OPERATORS = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}


@handles(*OPERATORS, args="this expression typed safe")
def arithmetic(s: Scalars, node: exp.Binary) -> Expr:
    # NB: sqlglot's `typed` and `safe` of a division say what the dialect is, not what the user wrote
    op, sides = OPERATORS[type(node)], [s.bind(node.this), s.bind(node.expression)]
    if intervals.involves_time(*sides):
        return intervals.arithmetic(op, *sides)
    return expression_builders.arithmetic(op, *s.as_numbers(sides, [node.this, node.expression]))


@handles(exp.Neg, args="this")
def negative(s: Scalars, node: exp.Neg) -> Expr:
    return intervals.negate(s.bind(node.this))


@handles(exp.DPipe, args="this expression safe")
def concatenation(s: Scalars, node: exp.DPipe) -> Expr:
    from squallpy.logical.bind.scalar.text import concat

    return concat(*(s.bind_value(part) for part in operands(node)))


handles(*predicates.COMPARISONS, args="this expression")(predicates.bind_comparison)
handles(exp.NullSafeNEQ, args="this expression")(predicates.bind_distinct_from)
handles(exp.Between, args="this low high symmetric")(predicates.bind_between)
handles(exp.In, args="this expressions query")(predicates.bind_in)
handles(exp.Like, exp.ILike, args="this expression negate")(predicates.bind_like)
handles(exp.SimilarTo, args="this expression")(predicates.bind_similar)
handles(exp.Escape, args="this expression")(predicates.bind_escape)
handles(exp.Is, args="this expression")(predicates.bind_is)


@handles(exp.Subquery, args="this")
def scalar_query(s: Scalars, node: exp.Subquery) -> Expr:
    return s.queries(node).bind_scalar(s, node.this)


@handles(exp.Exists, args="this")
def existence(s: Scalars, node: exp.Exists) -> Expr:
    return s.queries(node).bind_exists(s, node.this)


@handles(exp.And, exp.Or, args="this expression")
def connective(s: Scalars, node: exp.Connector) -> Expr:
    """Bind AND and OR, flat: a chain of any length is one call."""
    own = replace(s, clause=type(node).__name__.upper())
    conditions = [own.condition(part) for part in operands(node)]
    return (conjunction if isinstance(node, exp.And) else disjunction)(conditions)


def operands(node: exp.Binary) -> list[exp.Expr]:
    """List the operands of a chain of one operator: (a || b) || c  →  a, b, c"""
    kind, parts, spine = type(node), [], node
    while type(spine) is kind:
        parts.append(spine.expression)
        spine = spine.this
    return [spine, *reversed(parts)]


@handles(exp.Not, args="this")
def negation(s: Scalars, node: exp.Not) -> Expr:
    return call("not", replace(s, clause="NOT").condition(node.this))


handles(exp.Cast, args="this to")(casts.bind_cast)
handles(exp.TryCast, args="this to safe")(casts.bind_try_cast)


@handles(exp.Case, args="this ifs default")
def cases(s: Scalars, node: exp.Case) -> Expr:
    """Bind CASE WHEN condition …, and CASE x WHEN value … as comparisons with x."""
    whens: list[Expr] = []
    for branch in node.args["ifs"]:
        s.ctx.refuse_other_args(branch, "this", "true")
        if node.this is not None:
            condition: Expr = call("=", *s.bind_compared([node.this, branch.this]))
        else:
            condition = replace(s, clause="WHEN").condition(branch.this)
        whens.append(condition)
    values = [branch.args["true"] for branch in node.args["ifs"]]
    values += [default] if (default := node.args.get("default")) is not None else []
    bound = s.as_one_type([s.bind_value(value) for value in values], values)
    otherwise = bound.pop() if default is not None else Literal(None, NULL)
    return case(list(zip(whens, bound, strict=True)), otherwise)


@handles(exp.Extract, args="this expression")
def extraction(s: Scalars, node: exp.Extract) -> Expr:
    return extract(node.this.name, s.as_moment(s.bind(node.expression), TIMESTAMP, node.expression))


@handles(exp.Trim, args="this position expression")
def bind_trim(s: Scalars, node: exp.Trim) -> Expr:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
    characters = node.args.get("expression")
    return call(name, s.bind(node.this), s.bind(characters) if characters is not None else Literal(" ", VARCHAR))


@handles(exp.RegexpLike, args="this expression")
def regular(s: Scalars, node: exp.RegexpLike) -> Expr:
    return call("rlike", s.bind(node.this), s.bind(node.expression))


BITS = {
    exp.BitwiseAnd: "bit_and", exp.BitwiseOr: "bit_or", exp.BitwiseXor: "bit_xor",
    exp.BitwiseLeftShift: "shift_left", exp.BitwiseRightShift: "shift_right",
}  # fmt: skip


@handles(*BITS, args="this expression")
def bitwise(s: Scalars, node: exp.Binary) -> Expr:
    return call(BITS[type(node)], s.bind(node.this), s.bind(node.expression))


@handles(exp.BitwiseNot, args="this")
def bind_bitwise_not(s: Scalars, node: exp.BitwiseNot) -> Expr:
    return call("bit_not", s.bind(node.this))


@handles(exp.IntDiv, args="this expression")
def whole_quotient(s: Scalars, node: exp.IntDiv) -> Expr:
    return call("div", s.bind(node.this), s.bind(node.expression))


@handles(exp.Bracket, args="this expressions")
def item_of(s: Scalars, node: exp.Bracket) -> Expr:
    from squallpy.logical.bind.nested_values import item_at
    from squallpy.logical.bind.split_function import is_split, item

    if isinstance(node.this, exp.Column) and node.this.name.upper() == "MAP" and len(node.expressions) > 1:
        return s.bind(exp.Anonymous(this="MAP", expressions=node.expressions))  # MAP['a', 1, 'b', 2], as Flink has it
    if len(node.expressions) != 1:
        raise s.ctx.refuse(node)
    if is_split(node.this) and (part := item(s, node.this, node.expressions[0], 0)) is not None:
        return part
    return item_at(s, s.bind(node.this), node.expressions[0])


@handles(exp.Lambda, args="this expressions")
def bind_arrow(s: Scalars, node: exp.Lambda) -> Expr:
    if (extraction := in_lambda(node)) is None:
        raise s.ctx.refuse(node)
    return s.bind(extraction)


@handles(exp.Tuple, args="expressions")
def bind_row(s: Scalars, node: exp.Tuple) -> Expr:
    """Bind (a, b) where a value stands, a STRUCT."""
    return s.bind(exp.Anonymous(this="STRUCT", expressions=node.expressions))


@handles(exp.Array, args="expressions")
def bind_array(s: Scalars, node: exp.Array) -> Expr:
    from squallpy.logical.bind.nested_constructors import bind_constructor  # it binds items in turn

    made = bind_constructor(s, node)
    assert made is not None
    return made


@handles(exp.Anonymous, args="this expressions")
def bind_named_call(s: Scalars, node: exp.Anonymous) -> Expr:
    from squallpy.logical.bind.function_calls import function  # it binds arguments in turn

    return function(s, node)


@handles(exp.Window, args="this partition_by order spec alias over")
def window_function(s: Scalars, node: exp.Window) -> Expr:
    from squallpy.logical.bind.over.window_functions import bind_over_clause

    return bind_over_clause(s, node)


@handles(exp.WithinGroup, args="this expression")
def ordered_aggregate(s: Scalars, node: exp.WithinGroup) -> Expr:
    from squallpy.logical.bind.aggregates.calls import bind_within_group

    return bind_within_group(s, node)


@handles(exp.IgnoreNulls, exp.RespectNulls, args="this")
def about_nulls(s: Scalars, node: exp.IgnoreNulls | exp.RespectNulls) -> Expr:
    from squallpy.logical.bind.aggregates.calls import bind_ignore_nulls

    return bind_ignore_nulls(s, node)


@handles(exp.Filter, args="this expression")
def restricted(s: Scalars, node: exp.Filter) -> Expr:
    from squallpy.logical.bind.aggregates.calls import bind_filter

    return bind_filter(s, node)
