"""Expressions → functions from frames to vectors.

compiled(call("*", price, call("-", one, discount)))(frame)   →   Vec([…], valid)
"""

from typing import Any

from squallpy.base.types import Kind
from squallpy.functions.registry import OPERATIONS
from squallpy.logical.expressions import Call, Case, Cast, Column, Expr, Literal, columns
from squallpy.runtime.evaluate import logic
from squallpy.runtime.evaluate.casts import cast
from squallpy.runtime.evaluate.computed_patterns import varying
from squallpy.runtime.evaluate.evaluators import EVALUATORS, Function
from squallpy.runtime.evaluate.guarded import arm_by_arm, guarded
from squallpy.runtime.evaluate.scalar import conditional, datetime, hash, json, math, operators, text
from squallpy.runtime.evaluate.vectors import Vec

CATEGORIES = (conditional, datetime, hash, json, math, operators, text)  # each registers its evaluators


def compiled(expr: Expr) -> Function:
    """The function that evaluates `expr`; literals stay scalars."""
    match expr:
        case Column(id):
            return lambda frame: frame[id]
        case Literal(value):
            constant = Vec(value if value is not None else _filler(expr), None if value is not None else False)
            return lambda frame: constant
        case Cast(arg, target):
            inner, source = compiled(arg), arg.type
            return lambda frame: cast(inner(frame), source, target, frame.rows, expr)
        case Case(whens, otherwise, type):
            arms = [(compiled(c), compiled(v)) for c, v in whens]
            last = compiled(otherwise)
            return guarded(
                lambda frame: logic.case([(c(frame), v(frame)) for c, v in arms], last(frame), type, frame.rows),
                arm_by_arm(arms, last, type),
            )
        case Call(name, args) if OPERATIONS[name].settings and any(a == Literal(None, a.type) for a in args):
            nothing = Vec(_filler(Literal(None, expr.type)), False)
            return lambda frame: nothing
        case Call(name, args) if any(columns(a) for a in args[OPERATIONS[name].settings or len(args) :]):
            return varying(expr, compiled)
        case Call(name, args):
            return EVALUATORS[name](expr, [compiled(a) for a in args])
    raise AssertionError(expr)


def _filler(literal: Literal) -> Any:
    return "" if literal.type.kind in (Kind.VARCHAR, Kind.NULL) else False if literal.type.kind is Kind.BOOLEAN else 0
