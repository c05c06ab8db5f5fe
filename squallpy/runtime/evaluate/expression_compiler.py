"""The compiler of expressions to functions from frames to vectors.

compile_expression(call("*", price, call("-", one, discount)))(frame)   →   Vec([…], valid)
"""

from typing import Any

from squallpy.base.types import Kind
from squallpy.functions.registry import OPERATIONS
from squallpy.logical.expressions import Call, Case, Cast, Column, Expr, Lambda, Literal, columns
from squallpy.runtime.evaluate import logic
from squallpy.runtime.evaluate.casts import cast
from squallpy.runtime.evaluate.computed_patterns import compile_with_computed_settings
from squallpy.runtime.evaluate.evaluator_table import EVALUATORS
from squallpy.runtime.evaluate.guarded_expressions import case_by_arms, with_fallback
from squallpy.runtime.evaluate.scalar import (
    conditional,
    datetime,
    formats,
    hash,
    higher_order,
    json,
    math,
    nested,
    operators,
    python,
    text,
)
from squallpy.runtime.evaluate.vectors import Vec, VectorFunction

CATEGORIES = (
    conditional,
    datetime,
    formats,
    hash,
    higher_order,
    json,
    math,
    nested,
    operators,
    python,
    text,
)  # NB: each registers its evaluators


def compile_expression(expr: Expr) -> VectorFunction:
    """Compile an expression to a function of frames; literals stay scalars."""
    match expr:
        case Column(id):
            return lambda frame: frame[id]
        case Literal(value):
            constant = Vec(value if value is not None else _filler(expr), None if value is not None else False)
            return lambda frame: constant
        case Lambda(_, body):
            return compile_expression(body)  # for frames of its parameters
        case Cast(arg, target):
            inner, source = compile_expression(arg), arg.type
            return lambda frame: cast(inner(frame), source, target, frame.rows, expr)
        case Case(whens, otherwise, type):
            arms = [(compile_expression(c), compile_expression(v)) for c, v in whens]
            last = compile_expression(otherwise)
            return with_fallback(
                lambda frame: logic.case([(c(frame), v(frame)) for c, v in arms], last(frame), type, frame.rows),
                case_by_arms(arms, last, type),
            )
        case Call(name, args) if OPERATIONS[name].settings and any(a == Literal(None, a.type) for a in args):
            nothing = Vec(_filler(Literal(None, expr.type)), False)
            return lambda frame: nothing
        case Call(name, args) if any(columns(a) for a in args[OPERATIONS[name].settings or len(args) :]):
            return compile_with_computed_settings(expr, compile_expression)
        case Call(name, args):
            return EVALUATORS[name](expr, [compile_expression(a) for a in args])
    raise AssertionError(expr)


def _filler(literal: Literal) -> Any:
    return "" if literal.type.kind in (Kind.VARCHAR, Kind.NULL) else False if literal.type.kind is Kind.BOOLEAN else 0
