"""Functions that apply a lambda to the elements of an ARRAY, or to the entries of a MAP.

    FILTER(a, x -> x > k)   →   CAST(array_filter(a, k, (x, k) -> x > k) AS ARRAY<INT>)

What a lambda reads besides its parameters becomes an argument (Johnsson's lambda lifting, 1985), so that no pass has to
look into it.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from squallpy.base.errors import SquallError, counted
from squallpy.base.types import (
    BIGINT,
    BOOLEAN,
    INT,
    MOST_DIGITS,
    NULL,
    VARCHAR,
    Kind,
    Shape,
    Type,
    decimal,
    nested_type,
    unify,
)
from squallpy.frontend.unsupported import QUERIES
from squallpy.functions.registry import SCALARS
from squallpy.functions.scalar.nested import HIGHER_ORDER as FUNCTIONS
from squallpy.logical.bind.aggregates.calls import head
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.nested_constructors import json_of
from squallpy.logical.bind.nested_values import as_held
from squallpy.logical.coercion import coerce_exactly
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import Call, Cast, Column, Expr, Lambda, Literal, columns, substitute

HIGHER_ORDER = {name for function in FUNCTIONS for name in function.names}
OF_MAPS = ("MAP_FILTER", "TRANSFORM_VALUES", "TRANSFORM_KEYS")
TESTS = ("EXISTS", "FORALL")
FILTERS = ("FILTER", "MAP_FILTER")


def bind_higher_order(s: Scalars, node: exp.Anonymous) -> Expr:
    """Bind TRANSFORM(a, x -> …) and the like; SQ2005 for arguments that do not fit."""
    function, name = SCALARS[node.name.upper()], node.name.upper()
    given = [arg for arg in node.expressions if not isinstance(arg, exp.Lambda)]
    lambdas = [arg for arg in node.expressions if isinstance(arg, exp.Lambda)]
    folds = function.name == "AGGREGATE"
    if len(given) != 1 + folds or not 1 <= len(lambdas) <= 1 + folds or node.expressions != [*given, *lambdas]:
        raise SquallError("SQ2005", f"{name} is written {function.syntax}", head(s, node))
    values, shape = s.bind(given[0]), Shape.MAP if function.name in OF_MAPS else Shape.ARRAY
    nested = values.type.nested
    if nested is None or nested.shape is not shape:
        raise SquallError("SQ2005", f"{name} takes an {shape.value}, not {values.type}", head(s, node))
    if folds:
        return _fold(s, values, given[1], lambdas)
    body, parameters = _bind_body(s, lambdas[0], nested.types if shape is Shape.MAP else (nested.types[0], INT))
    if function.name in (*TESTS, *FILTERS):
        if body.type not in (BOOLEAN, NULL):
            raise s.ctx.error("SQ2005", f"{name} needs a condition, this is {body.type}", lambdas[0].this)
        made = apply_lambda(str(function.call), values, parameters, coerce_exactly(body, BOOLEAN))
        return made if function.name in TESTS else Cast(made, values.type)
    if function.name == "TRANSFORM_KEYS":
        if body.type == NULL or body.type.nested:
            raise s.ctx.error("SQ2005", f"TRANSFORM_KEYS makes keys of {body.type}", lambdas[0].this)
        made = apply_lambda(str(function.call), values, parameters, coerce_exactly(body, VARCHAR))
        return Cast(made, nested_type(shape, (body.type, nested.types[-1])))
    return transform(str(function.call), values, parameters, body)


def bind_sort(s: Scalars, node: exp.Anonymous) -> Expr:
    """Bind ARRAY_SORT(a, (x, y) -> n)."""
    values, written = s.bind(node.expressions[0]), node.expressions[1]
    nested = values.type.nested
    is_array = nested is not None and nested.shape is Shape.ARRAY
    if len(node.expressions) > 2 or not isinstance(written, exp.Lambda) or nested is None or not is_array:
        raise SquallError("SQ2005", f"ARRAY_SORT is written {SCALARS['ARRAY_SORT'].syntax}", head(s, node))
    check_parameters(s, written, 2, exactly=True)
    body, parameters = _bind_body(s, written, nested.types * 2)
    if not body.type.is_integer:
        raise s.ctx.error("SQ2005", f"ARRAY_SORT compares by an integer, this is {body.type}", written.this)
    return Cast(apply_lambda("array_sorted_by", values, parameters, coerce_exactly(body, BIGINT)), values.type)


def transform(operation: str, values: Expr, parameters: Sequence[Column], body: Expr) -> Expr:
    """Build the ARRAY, or the values of the MAP, that a lambda makes of another."""
    nested, body = values.type.nested, coerce_exactly(body, VARCHAR) if body.type == NULL else body
    assert nested is not None
    made = apply_lambda(operation, values, parameters, coalesce(json_of(body), Literal("null", VARCHAR)))
    return Cast(made, nested_type(nested.shape, (*nested.types[:-1], body.type)))


def _fold(s: Scalars, values: Expr, first: exp.Expr, lambdas: Sequence[exp.Lambda]) -> Expr:
    """Bind AGGREGATE(a, start, (acc, x) -> …, acc -> …)."""
    merge, start = lambdas[0], s.bind(first)
    element = values.type.nested.types[0]  # type: ignore[union-attr]
    if len(merge.expressions) != 2:
        raise s.ctx.error("SQ2005", "the first lambda of AGGREGATE has two parameters", merge, "write (acc, x) -> …")
    body, parameters = _bind_body(s, merge, (start.type, element))
    type = unify([start.type, body.type])
    if type is None or type == NULL:
        raise s.ctx.error("SQ2005", f"AGGREGATE begins with {start.type} and makes {body.type}", merge, "CAST one")
    if type.kind is Kind.DECIMAL and type != start.type:
        type = decimal(MOST_DIGITS, type.scale)
    body, parameters = _bind_body(s, merge, (type, element))
    made = apply_lambda("array_fold", values, parameters, coerce_exactly(body, type), coerce_exactly(start, type))
    if len(lambdas) == 1:
        return made
    finish = lambdas[1]
    if len(finish.expressions) != 1:
        raise s.ctx.error("SQ2005", "the second lambda of AGGREGATE has one parameter", finish, "write acc -> …")
    return _inside(s, {finish.expressions[0].name.lower(): made}).bind(finish.this)


def _bind_body(s: Scalars, written: exp.Lambda, types: Sequence[Type]) -> tuple[Expr, tuple[Column, ...]]:
    """Bind what a lambda computes, and its parameters, which have the first of some types."""
    check_parameters(s, written, len(types))
    names = [name.name for name in written.expressions]
    parameters = tuple(s.ctx.column(name, type, True) for name, type in zip(names, types, strict=False))
    return bind_body(s, written, {each.name.lower(): each for each in parameters}), parameters


def check_parameters(s: Scalars, written: exp.Lambda, most: int, exactly: bool = False) -> None:
    """Refuse a lambda with more parameters than values are given to it, or with two of one name: SQ2005."""
    names = [name.name for name in written.expressions]
    if not (most if exactly else 1) <= len(names) <= most:
        count = counted(len(names), "parameter", "parameters")
        message = f"{count}, {'' if exactly else 'at most '}{most} {'are' if most > 1 else 'is'} given"
        raise s.ctx.error("SQ2005", message, written)
    if len({name.lower() for name in names}) < len(names):
        raise s.ctx.error("SQ2005", "two parameters of a lambda have one name", written)


def bind_body(s: Scalars, written: exp.Lambda, parameters: dict[str, Expr]) -> Expr:
    """Bind what a lambda computes of its parameters."""
    if query := next(written.this.find_all(exp.Select, exp.SetOperation), None):
        raise s.ctx.refuse(query, QUERIES["lambda"])
    return _inside(s, parameters).bind(written.this)


def _inside(s: Scalars, parameters: dict[str, Expr]) -> Scalars:
    return replace(s, parameters={**s.parameters, **parameters}, subqueries=None, window_calls=None)


def apply_lambda(operation: str, values: Expr, parameters: Sequence[Column], body: Expr, *start: Expr) -> Call:
    """Build the call of an operation with a closed lambda: what the body reads besides its parameters is passed."""
    own = {parameter.id for parameter in parameters}
    passed = sorted((c for c in columns(body) if c.id not in own), key=lambda c: c.id)
    numbered = {c.id: replace(c, id=-1 - n) for n, c in enumerate((*parameters, *passed))}
    closed = Lambda(tuple(numbered.values()), substitute(body, {**numbered}))
    return call(operation, as_held(values), *start, *passed, closed)
