"""Evaluators of conditional functions."""

from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate import logic
from squallpy.runtime.evaluate.evaluator_table import Evaluated, evaluator
from squallpy.runtime.evaluate.scalar.operators import comparison
from squallpy.runtime.evaluate.vectors import VectorFunction


@evaluator("greatest", "least")
def extreme(call: Call, args: Evaluated) -> VectorFunction:
    type = call.args[0].type
    beats = comparison(">" if call.name == "greatest" else "<", type)
    return lambda frame: logic.greatest_or_least([a(frame) for a in args], beats, type, frame.rows)
