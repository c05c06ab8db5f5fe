"""Scalar expressions of the AST → typed expressions. One handler per class of node; any other is refused by name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BOOLEAN, DATE, INTERVAL, NULL, TIMESTAMP, VARCHAR, Kind, Type
from squallpy.frontend.type_names import named_type
from squallpy.frontend.unsupported import NODES, QUERIES
from squallpy.logical import functions
from squallpy.logical.bind.aggregates.collector import Aggregation
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime import calendar, intervals
from squallpy.logical.bind.scope import Scope
from squallpy.logical.coercion import cast, number_literal
from squallpy.logical.constant_folding import GROWING, LONGEST, length_of
from squallpy.logical.expressions import OPPOSITE, Call, Expr, Literal, conjunction, disjunction, not_null
from squallpy.logical.functions import call, case
from squallpy.logical.similar_to import expression_of

if TYPE_CHECKING:
    from squallpy.logical.bind.over.window_functions import WindowCalls
    from squallpy.logical.bind.subqueries import Subqueries


@dataclass(frozen=True, slots=True)
class Scalars:
    """Binds the expressions of one clause.

    `clause` is what messages call it; `aggregation` is None where aggregates make no sense, `window_calls` where window
    functions do not, `subqueries` where queries are not supported; `aliases` are the select list's names, seen before
    columns unless the column is one of `keys`, or only after them if `columns_first`.
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

    def bind(self, node: exp.Expr) -> Expr:
        """The typed expression of a node; every error points at the node or below it."""
        if type(node) not in HANDLERS:
            raise self.ctx.refuse(node)
        handler, arguments = HANDLERS[type(node)]
        self.ctx.only(node, *arguments)
        with self.ctx.at(node):
            bound = handler(self, node)
            if isinstance(bound, Call) and bound.name in GROWING:
                self.check_length(bound, node.name or bound.name)
            return bound

    def check_length(self, call: Call, name: str) -> None:
        """SQ2005 for a call whose constants make a text of more than LONGEST characters."""
        length = length_of(call.name, tuple(self.ctx.constant(arg) or arg for arg in call.args))
        if length > LONGEST:
            told = f"{name.upper()} to {length:,} characters is not supported"
            raise SquallError("SQ2005", told, hint=f"{LONGEST:,} are the most")

    def condition(self, node: exp.Expr) -> Expr:
        """A predicate: anything that is BOOLEAN, or NULL."""
        bound = self.bind(node)
        if bound.type.kind is Kind.NULL:
            return Literal(None, BOOLEAN)
        if bound.type != BOOLEAN:
            raise self.ctx.error("SQ2005", f"{self.clause} needs a condition, this is {bound.type}", node)
        return bound

    def inner(self) -> "Scalars":
        """The same for the arguments of an aggregate: columns only, no further aggregates."""
        below = self.aggregation.subqueries if self.aggregation else None
        return replace(self, clause="an aggregate", aggregation=None, aliases={}, subqueries=below, window_calls=None)

    def comparands(self, nodes: list[exp.Expr]) -> list[Expr]:
        """Bind expressions to be compared; text constants beside a DATE or TIMESTAMP are read as such."""
        return self.as_moments([self.bind(node) for node in nodes], nodes)

    def as_moments(self, values: list[Expr], nodes: list[exp.Expr]) -> list[Expr]:
        """Read text constants beside a DATE or TIMESTAMP as such, as TIMESTAMP where there are both."""
        types = {value.type for value in values if value.type.is_temporal}
        if not types:
            return values
        moment = TIMESTAMP if TIMESTAMP in types else DATE
        return [self.as_moment(value, moment, node) for value, node in zip(values, nodes, strict=True)]

    def compared(self, nodes: list[exp.Expr]) -> list[Expr]:
        """The same for what compares them at once: INTERVALs by how long they are."""
        return intervals.lengths(self.comparands(nodes))

    def as_moment(self, expr: Expr, moment: Type, node: exp.Expr) -> Expr:
        """Read a text constant as a DATE or TIMESTAMP; anything else stays."""
        if expr.type != VARCHAR:
            return expr
        text = self.ctx.folded(expr)
        if not isinstance(text, Literal):
            return expr
        with self.ctx.at(node):
            return cast(text, moment)


Handler = Callable[[Scalars, Any], Expr]
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
    """A column, or the name of an item of the select list where the clause sees those."""
    if isinstance(node.this, exp.Star):
        raise s.ctx.refuse(node.this)
    named = [] if node.args.get("table") else s.aliases.get(node.name.lower(), [])
    if named:
        found = s.scope.find(node.name)
        wins = bool(found) if s.columns_first else len(found) == 1 and found[0] in s.keys
        if not wins:
            if any(other != named[0] for other in named):
                raise s.ctx.error("SQ2002", f'"{node.name}" names several items of SELECT', node)
            return named[0]
    return s.scope.resolve(s.ctx, node)


@handles(exp.Literal, args="this is_string")
def literal(s: Scalars, node: exp.Literal) -> Expr:
    return Literal(node.name, VARCHAR) if node.is_string else number_literal(node.name)


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
    op, left, right = OPERATORS[type(node)], s.bind(node.this), s.bind(node.expression)
    if intervals.involves_time(left, right):
        return intervals.arithmetic(op, left, right)
    return functions.arithmetic(op, left, right)


@handles(exp.Neg, args="this")
def negative(s: Scalars, node: exp.Neg) -> Expr:
    return intervals.negate(s.bind(node.this))


@handles(exp.DPipe, args="this expression safe")
def concatenation(s: Scalars, node: exp.DPipe) -> Expr:
    return call("||", *(s.bind(part) for part in operands(node)))


COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
               exp.NullSafeEQ: "<=>"}  # fmt: skip


@handles(*COMPARISONS, args="this expression")
def comparison(s: Scalars, node: exp.Binary) -> Expr:
    if isinstance(node.expression, exp.Any | exp.All):
        return quantified(s, node, node.expression)
    if isinstance(node.this, exp.Tuple):
        return rows_compared(COMPARISONS[type(node)], row_pairs(s, node.this, node.expression))
    return call(COMPARISONS[type(node)], *s.compared([node.this, node.expression]))


def rows_compared(operator: str, pairs: list[list[Expr]]) -> Expr:
    """(a, b) = (c, d)  →  a = c AND b = d;  (a, b) < (c, d)  →  a < c OR a = c AND b < d"""
    if operator in ("=", "<=>"):
        return conjunction([call(operator, *pair) for pair in pairs])
    if operator == "<>":
        return call("not", rows_compared("=", pairs))
    *firsts, last = pairs
    found: Expr = call(operator, *last)
    for pair in reversed(firsts):
        found = disjunction([call(operator[0], *pair), conjunction([call("=", *pair), found])])
    return found


def row_pairs(s: Scalars, left: exp.Expr, right: exp.Expr) -> list[list[Expr]]:
    """The values of two rows, side by side."""
    if isinstance(right, exp.Subquery):
        raise s.ctx.refuse(right, QUERIES["rows of a query"])
    if not isinstance(right, exp.Tuple):
        raise s.ctx.refuse(left, NODES["Tuple"])
    if len(left.expressions) != len(right.expressions):
        message = f"a row of {len(left.expressions)} values with one of {len(right.expressions)}"
        raise s.ctx.error("SQ2005", message, right)
    return [s.compared(list(pair)) for pair in zip(left.expressions, right.expressions, strict=True)]


@handles(exp.NullSafeNEQ, args="this expression")
def distinct_from(s: Scalars, node: exp.NullSafeNEQ) -> Expr:
    if isinstance(node.this, exp.Tuple):
        return call("not", rows_compared("<=>", row_pairs(s, node.this, node.expression)))
    return call("not", call("<=>", *s.compared([node.this, node.expression])))


def quantified(s: Scalars, node: exp.Binary, quantifier: exp.Any | exp.All) -> Expr:
    """x < ANY (query);  x < ALL (query), which is NOT x >= ANY (query). Of rows: = ANY and <> ALL, as IN and NOT IN."""
    s.ctx.only(quantifier, "this")
    queries, query = queries_of(s, quantifier), quantifier.this
    if not isinstance(query, exp.Query):
        raise s.ctx.refuse(quantifier)
    operator, some = COMPARISONS[type(node)], isinstance(quantifier, exp.Any)
    if operator not in OPPOSITE:
        raise s.ctx.refuse(node)
    asked = operator if some else OPPOSITE[operator]
    if isinstance(node.this, exp.Tuple) and asked != "=":
        raise s.ctx.refuse(quantifier, QUERIES["rows of a query"])
    values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    found = queries.member(s, asked, [s.bind(value) for value in values], query)
    return found if some else call("not", found)


def queries_of(s: Scalars, node: exp.Expr) -> "Subqueries":
    if s.subqueries is None:
        raise s.ctx.refuse(node, QUERIES["subquery here"])
    return s.subqueries


@handles(exp.Subquery, args="this")
def scalar_query(s: Scalars, node: exp.Subquery) -> Expr:
    return queries_of(s, node).scalar(s, node.this)


@handles(exp.Exists, args="this")
def existence(s: Scalars, node: exp.Exists) -> Expr:
    return queries_of(s, node).exists(s, node.this)


@handles(exp.And, exp.Or, args="this expression")
def connective(s: Scalars, node: exp.Connector) -> Expr:
    """AND and OR, flat: a chain of any length is one call."""
    own = replace(s, clause=type(node).__name__.upper())
    conditions = [own.condition(part) for part in operands(node)]
    return (conjunction if isinstance(node, exp.And) else disjunction)(conditions)


def operands(node: exp.Binary) -> list[exp.Expr]:
    """What a chain of one operator joins: (a || b) || c  →  a, b, c"""
    kind, parts, spine = type(node), [], node
    while type(spine) is kind:
        parts.append(spine.expression)
        spine = spine.this
    return [spine, *reversed(parts)]


@handles(exp.Not, args="this")
def negation(s: Scalars, node: exp.Not) -> Expr:
    return call("not", replace(s, clause="NOT").condition(node.this))


@handles(exp.Between, args="this low high symmetric")
def between(s: Scalars, node: exp.Between) -> Expr:
    """BETWEEN a AND b; SYMMETRIC: or between b and a."""
    if isinstance(node.this, exp.Tuple):
        lows, highs = (row_pairs(s, node.this, node.args[bound]) for bound in ("low", "high"))
    else:
        value, low, high = s.compared([node.this, node.args["low"], node.args["high"]])
        lows, highs = [[value, low]], [[value, high]]
    test = call("and", rows_compared(">=", lows), rows_compared("<=", highs))
    if not node.args.get("symmetric"):
        return test
    return disjunction([test, call("and", rows_compared(">=", highs), rows_compared("<=", lows))])


@handles(exp.In, args="this expressions query")
def membership(s: Scalars, node: exp.In) -> Expr:
    """x IN (…): one call over constants; otherwise a disjunction of equalities. x IN (query) is x = ANY (query)."""
    if node.args.get("query") is not None:
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        return queries_of(s, node).member(s, "=", [s.bind(value) for value in values], node.args["query"])
    if isinstance(node.this, exp.Tuple):
        return disjunction([rows_compared("=", row_pairs(s, node.this, option)) for option in node.expressions])
    value, *options = s.compared([node.this, *node.expressions])
    if all(isinstance(option, Literal) for option in options):
        return call("in", value, *options)
    tests = [call("=", value, option) for option in options]
    return disjunction(tests)


@handles(exp.Like, exp.ILike, args="this expression negate")
def like(s: Scalars, node: exp.Like | exp.ILike) -> Expr:
    return matches(s, node, None)


@handles(exp.SimilarTo, args="this expression")
def similar(s: Scalars, node: exp.SimilarTo) -> Expr:
    return is_similar(s, node, Literal("\\", VARCHAR))


@handles(exp.Escape, args="this expression")
def escape(s: Scalars, node: exp.Escape) -> Expr:
    if not isinstance(node.this, exp.Like | exp.ILike | exp.SimilarTo):
        raise s.ctx.refuse(node)
    s.ctx.only(node.this, "this", "expression", "negate")
    character = s.ctx.folded(s.bind(node.expression))
    if not isinstance(character, Literal) or len(str(character.value)) != 1:
        raise s.ctx.error("SQ2005", "ESCAPE needs one character", node.expression)
    return (
        is_similar(s, node.this, character)
        if isinstance(node.this, exp.SimilarTo)
        else matches(s, node.this, character)
    )


def is_similar(s: Scalars, node: exp.SimilarTo, character: Literal) -> Expr:
    """SIMILAR TO; as in PostgreSQL a backslash escapes unless ESCAPE says otherwise."""
    pattern = s.ctx.folded(s.bind(node.expression))
    test = call("similar", s.bind(node.this), pattern, character)
    if isinstance(pattern, Literal) and pattern.value is not None:
        try:
            expression_of(pattern.value, character.value)
        except SquallError as error:
            raise s.ctx.error("SQ2005", error.message, node.expression) from None
    return test


def matches(s: Scalars, node: exp.Like | exp.ILike, character: Literal | None) -> Expr:
    """LIKE; as in Spark a backslash escapes unless ESCAPE says otherwise. ILIKE compares in lower case."""
    if isinstance(node.expression, exp.Any | exp.All):
        s.ctx.only(node.expression, "this")
        patterns = node.expression.this
        if not isinstance(patterns, exp.Tuple | exp.Paren):
            raise s.ctx.refuse(node.expression)
        every = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns.this]
        if not every:
            raise s.ctx.error("SQ2005", "LIKE ANY and ALL need a pattern", node.expression)
        tests = [matches(s, alone(node, each), character) for each in every]
        return disjunction(tests) if isinstance(node.expression, exp.Any) else conjunction(tests)
    value, pattern = s.bind(node.this), s.bind(node.expression)
    if character is None and not (isinstance(pattern, Literal) and "\\" not in str(pattern.value)):
        character = Literal("\\", VARCHAR)
    if isinstance(node, exp.ILike):
        value, pattern = call("lower", value), call("lower", pattern)
    test = call("like", value, pattern, *([character] if character else []))
    return call("not", test) if node.args.get("negate") else test


def alone(node: exp.Like | exp.ILike, pattern: exp.Expr) -> exp.Like | exp.ILike:
    """x LIKE ANY (a, b)  →  x LIKE a"""
    one = node.copy()
    one.set("expression", pattern.copy())
    one.parent = node.parent
    return one


@handles(exp.Is, args="this expression")
def truth(s: Scalars, node: exp.Is) -> Expr:
    """x IS NULL; x IS TRUE and x IS FALSE, which are never NULL."""
    if isinstance(node.expression, exp.Null):
        value = s.bind(node.this)
        return call("is_null", value if value.type != INTERVAL else reduce(intervals.total, intervals.parts(value)))
    if not isinstance(node.expression, exp.Boolean):
        raise s.ctx.refuse(node)
    value = replace(s, clause="IS TRUE").condition(node.this)
    test = value if node.expression.this else call("not", value)
    return call("and", test, not_null(value))


@handles(exp.TryCast, args="this to safe")
def attempt(s: Scalars, node: exp.TryCast) -> Expr:
    """TRY_CAST, which is NULL where CAST would fail."""
    target, value = target_of(s, node), s.bind(node.this)
    note_lost_fraction(s, node, value, target)
    if isinstance(value, Literal):
        cast(s.ctx.column("x", value.type, True), target)  # is there such a cast?
        try:
            return cast(value, target)
        except SquallError:
            return Literal(None, target)
    found = cast(value, target)
    return call("tried", found) if found is not value else found


@handles(exp.Cast, args="this to")
def conversion(s: Scalars, node: exp.Cast) -> Expr:
    target, value = target_of(s, node), s.bind(node.this)
    note_lost_fraction(s, node, value, target)
    return cast(value, target)


def note_lost_fraction(s: Scalars, node: exp.Expr, value: Expr, target: Type) -> None:
    """Tell that DECIMAL without digits has none behind the point, if the value may have some."""
    written = node.args.get("to")
    if target.kind is not Kind.DECIMAL or (written is not None and written.expressions):
        return
    has_fraction = value.type.kind in (Kind.DOUBLE, Kind.VARCHAR) or value.type.scale > 0
    if isinstance(value, Literal) and has_fraction:
        has_fraction = (
            value.value is not None and "." in str(value) and not str(value).strip("'").rstrip("0").endswith(".")
        )
    if has_fraction:
        hint = "write how many digits there are: DECIMAL(18,2)"
        s.ctx.note("DECIMAL without digits is DECIMAL(10,0), as in Spark: the fraction is rounded off", node, hint)


def target_of(s: Scalars, node: exp.Cast | exp.TryCast) -> Type:
    """The type that a cast is to."""
    target = node.args["to"]
    s.ctx.only(target, "this", "expressions", "nested")
    plain = isinstance(target.this, exp.DType)
    if not plain or not all(re.fullmatch("[0-9]{1,9}", p.name) for p in target.expressions):
        raise SquallError("SQ2008", f"{target.sql()[:80]} is not a type we have")
    parameters = [int(p.name) for p in target.expressions]
    name = "TIMESTAMP" if target.this.value.startswith("TIMESTAMP") else target.this.value
    return named_type(name, parameters)


@handles(exp.Case, args="this ifs default")
def cases(s: Scalars, node: exp.Case) -> Expr:
    """CASE WHEN condition …, and CASE x WHEN value … as comparisons with x."""
    whens: list[Expr] = []
    for branch in node.args["ifs"]:
        s.ctx.only(branch, "this", "true")
        if node.this is not None:
            condition: Expr = call("=", *s.compared([node.this, branch.this]))
        else:
            condition = replace(s, clause="WHEN").condition(branch.this)
        whens.append(condition)
    values = [branch.args["true"] for branch in node.args["ifs"]]
    values += [default] if (default := node.args.get("default")) is not None else []
    bound = s.as_moments([s.bind(value) for value in values], values)
    otherwise = bound.pop() if default is not None else Literal(None, NULL)
    return case(list(zip(whens, bound, strict=True)), otherwise)


@handles(exp.Extract, args="this expression")
def extraction(s: Scalars, node: exp.Extract) -> Expr:
    return extract(node.this.name, s.bind(node.expression))


PARTS = {
    **{name: name for name in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")},
    "dayofweek": "dayofweek",
    "dow": "dayofweek",
    "dayofyear": "dayofyear",
    "doy": "dayofyear",
}


MADE: dict[str, Callable[[Expr], Expr]] = {
    "epoch": calendar.epoch,
    "isoyear": calendar.iso_year,
    "yearofweek": calendar.iso_year,
    **dict.fromkeys(
        ("isodow", "dayofweek_iso"), lambda moment: call("+", call("extract_weekday", moment), calendar.number(1))
    ),
}


def extract(part: str, moment: Expr) -> Expr:
    """EXTRACT(part FROM moment)"""
    if isinstance(moment, Call) and moment.name == "days_between":
        moment = intervals.length(intervals.ZERO, moment, intervals.ZERO)
    if moment.type == INTERVAL:
        return calendar.part_of(part, moment)
    if part.lower() in MADE:
        return MADE[part.lower()](moment)
    known = PARTS.get(part.lower()) or PARTS.get(part.lower().removesuffix("s"))
    if known is None:
        raise SquallError("SQ3001", f"EXTRACT({part.upper()} FROM …) is not supported yet")
    return call(f"extract_{known}", moment)


@handles(exp.Trim, args="this position expression")
def trimming(s: Scalars, node: exp.Trim) -> Expr:
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
def inverted(s: Scalars, node: exp.BitwiseNot) -> Expr:
    return call("bit_not", s.bind(node.this))


@handles(exp.IntDiv, args="this expression")
def whole_quotient(s: Scalars, node: exp.IntDiv) -> Expr:
    return call("div", s.bind(node.this), s.bind(node.expression))


@handles(exp.Bracket, args="this expressions")
def item_of(s: Scalars, node: exp.Bracket) -> Expr:
    from squallpy.logical.bind.split_function import is_split, item

    if not is_split(node.this) or len(node.expressions) != 1:
        raise s.ctx.refuse(node)
    return item(s, node.this, node.expressions[0], 0)


@handles(exp.Anonymous, args="this expressions")
def named(s: Scalars, node: exp.Anonymous) -> Expr:
    from squallpy.logical.bind.scalar_functions import function  # it binds arguments in turn

    return function(s, node)


@handles(exp.Window, args="this partition_by order spec alias over")
def window_function(s: Scalars, node: exp.Window) -> Expr:
    from squallpy.logical.bind.over.window_functions import over

    return over(s, node)


@handles(exp.WithinGroup, args="this expression")
def ordered_aggregate(s: Scalars, node: exp.WithinGroup) -> Expr:
    from squallpy.logical.bind.aggregates.calls import ordered

    return ordered(s, node)


@handles(exp.IgnoreNulls, exp.RespectNulls, args="this")
def about_nulls(s: Scalars, node: exp.IgnoreNulls | exp.RespectNulls) -> Expr:
    from squallpy.logical.bind.aggregates.calls import marked

    return marked(s, node)


@handles(exp.Filter, args="this expression")
def restricted(s: Scalars, node: exp.Filter) -> Expr:
    from squallpy.logical.bind.aggregates.calls import filtered

    return filtered(s, node)
