"""Lanes of a view: the counts and sums of its payloads, each distinct product once."""

from itertools import zip_longest

from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expressions import Column, Expr
from squallpy.maintain.lowering.variables import Variables
from squallpy.maintain.relational.scalar_polynomials import Polynomial, linear, present
from squallpy.program.calculus import Lane
from squallpy.program.output_spec import Measure


class Lanes:
    """The lanes of a view, each distinct product once; lane 0 counts rows. A lane has a value for each block."""

    def __init__(self, blocks: list["Variables"]) -> None:
        self._blocks = blocks
        self.all: list[tuple[Lane | None, ...]] = [((),) * len(blocks)]
        self._numbers = {self.all[0]: 0}

    def measure(self, column: Column, agg: Agg, args: list[Expr | None]) -> Measure:
        """Make the measure of an aggregate whose argument is `args` in the blocks."""
        if agg.arg is None:
            return Measure(agg.function, column, ((1, 0),), ((1, 0),))
        given = [(arg, block.owner) for arg, block in zip(args, self._blocks, strict=True) if arg is not None]
        seen = self._number([present(arg, owner) for arg, owner in given])
        value = seen if agg.function == "count" else self._number([linear(arg, owner) for arg, owner in given])
        return Measure(agg.function, column, value, seen, agg.arg.type.scale)

    def _number(self, polynomials: list[Polynomial]) -> tuple[tuple[int, int], ...]:
        """Write a polynomial for each block as one over lane numbers; terms of one coefficient share lanes, in
        order."""
        terms: dict[int, int] = {}
        for coefficient in dict.fromkeys(c for polynomial in polynomials for c, _ in polynomial):
            mine = [[lane for c, lane in polynomial if c == coefficient] for polynomial in polynomials]
            for lanes in zip_longest(*mine):
                lane = tuple(
                    None if own is None else tuple(block.rename(factor) for factor in own)
                    for own, block in zip(lanes, self._blocks, strict=True)
                )
                number = self._numbers.setdefault(lane, len(self.all))
                if number == len(self.all):
                    self.all.append(lane)
                terms[number] = terms.get(number, 0) + coefficient
        return tuple((coefficient, number) for number, coefficient in terms.items() if coefficient)
