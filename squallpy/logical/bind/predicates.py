"""Binding of comparisons, BETWEEN, IN, LIKE and IS to typed expressions."""

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import INTERVAL, VARCHAR, Shape
from squallpy.frontend.dialect import is_call
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.datetime import intervals
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import OPPOSITE, Expr, Literal, conjunction, disjunction, not_null
from squallpy.logical.nested_order import compare
from squallpy.logical.similar_to import expression_of

if TYPE_CHECKING:
    from squallpy.logical.bind.expressions import Scalars

BACKSLASH = Literal("\\", VARCHAR)
COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
               exp.NullSafeEQ: "<=>"}  # fmt: skip


def bind_comparison(s: "Scalars", node: exp.Binary) -> Expr:
    """Bind a comparison of values, of rows, or with ANY or ALL rows of a query or elements of an ARRAY."""
    if isinstance(node.expression, exp.Any | exp.All):
        return _bind_quantified(s, node, node.expression)
    if is_call(node.expression, "ANY", "SOME", "ALL") and (over := _compare_elements(s, node)) is not None:
        return over
    if isinstance(node.this, exp.Tuple):
        return compare_rows(COMPARISONS[type(node)], pair_rows(s, node.this, node.expression))
    return compare(COMPARISONS[type(node)], *s.bind_compared([node.this, node.expression]))


def compare_rows(operator: str, pairs: list[list[Expr]]) -> Expr:
    """Compare rows: (a, b) = (c, d)  →  a = c AND b = d;  (a, b) < (c, d)  →  a < c OR a = c AND b < d"""
    if operator in ("=", "<=>"):
        return conjunction([call(operator, *pair) for pair in pairs])
    if operator == "<>":
        return call("not", compare_rows("=", pairs))
    *firsts, last = pairs
    found = compare(operator, *last)
    for pair in reversed(firsts):
        found = disjunction([compare(operator[0], *pair), conjunction([call("=", *pair), found])])
    return found


def pair_rows(s: "Scalars", left: exp.Expr, right: exp.Expr) -> list[list[Expr]]:
    """Pair the values of two rows."""
    if isinstance(right, exp.Subquery):
        raise s.ctx.refuse(right, QUERIES["rows of a query"])
    if not isinstance(right, exp.Tuple):
        raise s.ctx.refuse(left, QUERIES["row beside a value"])
    if len(left.expressions) != len(right.expressions):
        message = f"a row of {len(left.expressions)} values with one of {len(right.expressions)}"
        raise s.ctx.error("SQ2005", message, right)
    return [s.bind_compared(list(pair)) for pair in zip(left.expressions, right.expressions, strict=True)]


def bind_distinct_from(s: "Scalars", node: exp.NullSafeNEQ) -> Expr:
    """Bind IS DISTINCT FROM."""
    if isinstance(node.this, exp.Tuple):
        return call("not", compare_rows("<=>", pair_rows(s, node.this, node.expression)))
    return call("not", call("<=>", *s.bind_compared([node.this, node.expression])))


def _bind_quantified(s: "Scalars", node: exp.Binary, quantifier: exp.Any | exp.All) -> Expr:
    """Bind x < ANY (query), or x < ALL (query), which is NOT x >= ANY (query).

    Rows can be compared by = ANY and <> ALL, as by IN and NOT IN.
    """
    s.ctx.refuse_other_args(quantifier, "this")
    queries, query = s.queries(quantifier), quantifier.this
    if not isinstance(query, exp.Query):
        raise s.ctx.refuse(quantifier)
    operator, some = COMPARISONS[type(node)], isinstance(quantifier, exp.Any)
    if operator not in OPPOSITE:
        raise s.ctx.refuse(node)
    comparison = operator if some else OPPOSITE[operator]
    if isinstance(node.this, exp.Tuple) and comparison != "=":
        raise s.ctx.refuse(quantifier, QUERIES["rows of a query"])
    values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
    found = queries.bind_quantified(s, comparison, [s.bind(value) for value in values], query)
    return found if some else call("not", found)


def _compare_elements(s: "Scalars", node: exp.Binary) -> Expr | None:
    """Bind x < ANY (a), which is EXISTS(a, e -> x < e), or x < ALL (a); None where ANY is the aggregate.

    Comparisons with NULLs are NULL, so that 1 = ANY (ARRAY(2, NULL)) is; of no elements ANY is FALSE, ALL TRUE.
    """
    from squallpy.logical.bind.higher_order_functions import apply_lambda

    name, given = node.expression.name.upper(), node.expression.expressions
    values = s.bind(given[0]) if len(given) == 1 else None
    nested = values.type.nested if values is not None else None
    if values is None or nested is None or nested.shape is not Shape.ARRAY:
        if name == "ALL":
            raise s.ctx.error("SQ2005", "ALL needs a query or an ARRAY", node.expression)
        return None
    element = s.ctx.column("element", nested.types[0], True)
    (value,) = intervals.lengths([s.bind(node.this)])
    value, _ = s.as_one_type([value, element], [node.this, node.expression])
    test = compare(COMPARISONS[type(node)], value, element)
    return apply_lambda("array_forall" if name == "ALL" else "array_exists", values, (element,), test)


def bind_between(s: "Scalars", node: exp.Between) -> Expr:
    """Bind BETWEEN a AND b, if it is SYMMETRIC also between b and a."""
    if isinstance(node.this, exp.Tuple):
        lows, highs = (pair_rows(s, node.this, node.args[bound]) for bound in ("low", "high"))
    else:
        value, low, high = s.bind_compared([node.this, node.args["low"], node.args["high"]])
        lows, highs = [[value, low]], [[value, high]]
    test = call("and", compare_rows(">=", lows), compare_rows("<=", highs))
    if not node.args.get("symmetric"):
        return test
    return disjunction([test, call("and", compare_rows(">=", highs), compare_rows("<=", lows))])


def bind_in(s: "Scalars", node: exp.In) -> Expr:
    """Bind x IN (…): one call over constants, else equalities with OR; x IN (query) is x = ANY (query).

    IN (VALUES (1), (2)) is IN (1, 2).
    """
    if node.args.get("query") is not None:
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        return s.queries(node).bind_quantified(s, "=", [s.bind(value) for value in values], node.args["query"])
    given = node.expressions
    if len(given) == 1 and isinstance(given[0], exp.Values):
        given = [row if len(row.expressions) > 1 else row.expressions[0] for row in given[0].expressions]
    if isinstance(node.this, exp.Tuple):
        return disjunction([compare_rows("=", pair_rows(s, node.this, option)) for option in given])
    value, *options = s.bind_compared([node.this, *given])
    if all(isinstance(option, Literal) for option in options):
        return call("in", value, *options)
    tests = [call("=", value, option) for option in options]
    return disjunction(tests)


def bind_escape(s: "Scalars", node: exp.Escape) -> Expr:
    """Bind LIKE, ILIKE or SIMILAR TO with ESCAPE."""
    if not isinstance(node.this, exp.Like | exp.ILike | exp.SimilarTo):
        raise s.ctx.refuse(node)
    s.ctx.refuse_other_args(node.this, "this", "expression", "negate")
    character = s.ctx.fold(s.bind(node.expression))
    if not isinstance(character, Literal) or len(str(character.value)) != 1:
        raise s.ctx.error("SQ2005", "ESCAPE needs one character", node.expression)
    return (
        bind_similar(s, node.this, character)
        if isinstance(node.this, exp.SimilarTo)
        else bind_like(s, node.this, character)
    )


def bind_similar(s: "Scalars", node: exp.SimilarTo, character: Literal = BACKSLASH) -> Expr:
    """Bind SIMILAR TO; as in PostgreSQL a backslash escapes unless ESCAPE says otherwise."""
    pattern = s.ctx.fold(s.bind(node.expression))
    test = call("similar", s.bind(node.this), pattern, character)
    if isinstance(pattern, Literal) and pattern.value is not None:
        try:
            expression_of(pattern.value, character.value)
        except SquallError as error:
            raise s.ctx.error("SQ2005", error.message, node.expression) from None
    return test


def bind_like(s: "Scalars", node: exp.Like | exp.ILike, character: Literal | None = None) -> Expr:
    """Bind LIKE; as in Spark a backslash escapes unless ESCAPE says otherwise. ILIKE compares in lower case."""
    if isinstance(node.expression, exp.Any | exp.All):
        s.ctx.refuse_other_args(node.expression, "this")
        patterns = node.expression.this
        if not isinstance(patterns, exp.Tuple | exp.Paren):
            raise s.ctx.refuse(node.expression)
        every = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns.this]
        if not every:
            raise s.ctx.error("SQ2005", "LIKE ANY and ALL need a pattern", node.expression)
        tests = [bind_like(s, _with_pattern(node, each), character) for each in every]
        return disjunction(tests) if isinstance(node.expression, exp.Any) else conjunction(tests)
    test = like(s.bind(node.this), s.bind(node.expression), character, isinstance(node, exp.ILike))
    return call("not", test) if node.args.get("negate") else test


def like(value: Expr, pattern: Expr, character: Expr | None = None, in_any_case: bool = False) -> Expr:
    """Build LIKE and ILIKE, whose patterns a character escapes, or a backslash."""
    if character is None and not (isinstance(pattern, Literal) and "\\" not in str(pattern.value)):
        character = BACKSLASH
    if in_any_case:
        value, pattern = call("lower", value), call("lower", pattern)
    return call("like", value, pattern, *([character] if character else []))


def _with_pattern(node: exp.Like | exp.ILike, pattern: exp.Expr) -> exp.Like | exp.ILike:
    """Give a LIKE another pattern: x LIKE ANY (a, b)  →  x LIKE a"""
    one = node.copy()
    one.set("expression", pattern.copy())
    one.parent = node.parent
    return one


def bind_is(s: "Scalars", node: exp.Is) -> Expr:
    """Bind x IS NULL, x IS TRUE and x IS FALSE, which are never NULL."""
    if isinstance(node.expression, exp.Null):
        value = s.bind(node.this)
        return call("is_null", value if value.type != INTERVAL else reduce(intervals.total, intervals.parts(value)))
    if not isinstance(node.expression, exp.Boolean):
        raise s.ctx.refuse(node)
    value = replace(s, clause="IS TRUE").condition(node.this)
    test = value if node.expression.this else call("not", value)
    return call("and", test, not_null(value))
