"""Evaluators of operators, of predicates, and of operations that no query writes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import COMPARISONS, Call, Cast, Literal
from squallpy.runtime.evaluate import exact_arithmetic, logic, moments
from squallpy.runtime.evaluate.casts import try_cast
from squallpy.runtime.evaluate.evaluator_table import (
    EVALUATORS,
    Evaluated,
    binary,
    evaluator,
    mask,
    of_text,
    parameter,
    unary,
)
from squallpy.runtime.evaluate.guarded_expressions import short_circuit, with_fallback
from squallpy.runtime.evaluate.scalar import text
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid


@evaluator("and")
def conjunction(call: Call, args: Evaluated) -> VectorFunction:
    return with_fallback(lambda frame: logic.conjunction([a(frame) for a in args]), short_circuit(args, True))


@evaluator("or")
def disjunction(call: Call, args: Evaluated) -> VectorFunction:
    return with_fallback(lambda frame: logic.disjunction([a(frame) for a in args]), short_circuit(args, False))


@evaluator("not")
def negation(call: Call, args: Evaluated) -> VectorFunction:
    return unary(args[0], np.logical_not)


@evaluator("is_null")
def is_null(call: Call, args: Evaluated) -> VectorFunction:
    return lambda frame: logic.is_null(args[0](frame), frame.rows)


@evaluator("in")
def member(call: Call, args: Evaluated) -> VectorFunction:
    kind, listed = call.args[0].type, [a.value for a in call.args[1:] if isinstance(a, Literal) and a.value is not None]
    assert all(isinstance(a, Literal) for a in call.args[1:])
    has_null = len(listed) < len(call.args) - 1
    return lambda frame: logic.member(args[0](frame), listed, has_null, kind)


@evaluator(*COMPARISONS)
def compared(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, comparison(call.name, call.args[0].type))


@evaluator("<=>")
def not_distinct(call: Call, args: Evaluated) -> VectorFunction:
    equal = EVALUATORS["="](replace(call, name="="), args)
    return lambda frame: logic.same(equal(frame), args[0](frame), args[1](frame), frame.rows)


@evaluator("+", "-", "*")
def arithmetic(call: Call, args: Evaluated) -> VectorFunction:
    operate: Any = {"+": np.add, "-": np.subtract, "*": np.multiply}[call.name]
    if call.type.kind is Kind.DOUBLE:
        return binary(args, exact_arithmetic.real(operate))
    bound: Callable[[int, int], int] = (lambda x, y: x * y) if call.name == "*" else (lambda x, y: x + y)
    return binary(args, exact_arithmetic.exact(operate, bound, call))


@evaluator("total", "difference", "product", "remainder")
def rounded_decimals(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, exact_arithmetic.rounded_decimals(call))


@evaluator("/")
def quotient(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, exact_arithmetic.divide)


@evaluator("%")
def remainder(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, exact_arithmetic.remainder)


@evaluator("negate")
def opposite(call: Call, args: Evaluated) -> VectorFunction:
    return exact_arithmetic.negate_or_abs(args[0], np.negative, call)


@evaluator("bit_and", "bit_or", "bit_xor")
def bits(call: Call, args: Evaluated) -> VectorFunction:
    operate: Any = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}[call.name]
    return binary(args, lambda a, b: Vec(operate(a.values, b.values), all_valid(a.valid, b.valid)))


@evaluator("bit_not")
def other_bits(call: Call, args: Evaluated) -> VectorFunction:
    return unary(args[0], np.bitwise_not)


@evaluator("||")
def concatenation(call: Call, args: Evaluated) -> VectorFunction:
    def run(frame: VectorFrame) -> Vec:
        parts = [a(frame) for a in args]
        return Vec(text.concat([part.values for part in parts]), all_valid(*(part.valid for part in parts)))

    return run


@evaluator("like", "similar")
def pattern(call: Call, args: Evaluated) -> VectorFunction:
    match = text.like if call.name == "like" else text.similar_to
    expression, escape = parameter(call, 1), parameter(call, 2) if len(args) > 2 else None
    return of_text(args[0], lambda x: mask(match(x, expression, escape)))


@evaluator("tried")
def attempt(call: Call, args: Evaluated) -> VectorFunction:
    from squallpy.runtime.evaluate.expression_compiler import compile_expression  # NB: that module imports this one

    match call.args[0]:
        case Cast(arg, target):
            given = compile_expression(arg)
            return lambda frame: try_cast(given(frame), arg.type, target, frame.rows)
    return args[0]


@evaluator("checked")
def checked(call: Call, args: Evaluated) -> VectorFunction:
    return binary(args, lambda total, near: exact_arithmetic.check_sum(total, near, call))


@evaluator("only")
def only(call: Call, args: Evaluated) -> VectorFunction:
    query = parameter(call, 2)
    return lambda frame: logic.assert_single_row(args[0](frame), args[1](frame), query)


@evaluator("var_samp", "var_pop")
def variance(call: Call, args: Evaluated) -> VectorFunction:
    scale, sample = call.args[3].type.scale, call.name == "var_samp"
    return lambda frame: moments.variance([a(frame) for a in args], scale, sample)


@evaluator("skewness", "kurtosis")
def standardised_moment(call: Call, args: Evaluated) -> VectorFunction:
    return lambda frame: moments.standardised_moment([a(frame) for a in args])


@evaluator("covar_samp", "covar_pop")
def covariance(call: Call, args: Evaluated) -> VectorFunction:
    scale, sample = call.args[3].type.scale, call.name == "covar_samp"
    return lambda frame: moments.covariance([a(frame) for a in args], scale, sample)


@evaluator("product_rest")
def product_rest(call: Call, args: Evaluated) -> VectorFunction:
    def run(frame: VectorFrame) -> Vec:
        (x, y) = (arg(frame) for arg in args)
        with np.errstate(all="ignore"):
            return Vec(moments.two_product(x.values, y.values)[1], all_valid(x.valid, y.valid))

    return run


def comparison(name: str, type: Type) -> Callable[[Vec, Vec], Vec]:
    """Make the comparison of vectors of a type."""
    if type.kind is Kind.VARCHAR:
        return lambda a, b: Vec(mask(text.compare(name, a.values, b.values)), all_valid(a.valid, b.valid))
    return exact_arithmetic.compare(name, type.kind is Kind.DOUBLE)
