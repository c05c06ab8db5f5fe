"""Partitions that have matrices in blocks also read: what a batch changes there goes where a plan needs it."""

from dataclasses import dataclass, replace

from squallpy.physical.matrix.blocks import Part
from squallpy.physical.matrix.programs import MatrixPlan
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.node import Input, Made, Sender
from squallpy.runtime.matrix.commands import Orders
from squallpy.runtime.matrix.partition import MatrixPart


@dataclass
class _Here:
    """What was made of a batch in this partition."""

    now: Made | None = None

    def made(self, batch: int, split: int, splits: int) -> Made:
        assert self.now
        return self.now


def reading_part(plan: Plan, input: Input, matrices: MatrixPlan, number: int) -> MatrixPart:
    """A partition whose last superstep is to read its share of the other relations, too."""
    here = _Here()
    sender = Sender(plan, replace(input, maker=here))

    def read(orders: Orders, made: Made) -> list[tuple[int, bytes]]:
        here.now = made
        return sender.messages(orders.batch, number, matrices.parts, orders.course)

    return MatrixPart(matrices, Part(number, matrices.parts), read)
