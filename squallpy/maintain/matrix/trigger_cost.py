"""Costs of triggers and evaluations: operations, cells of matrices that are visited, and steps, in one unit.

    A^16, n = 2,000     a trigger: 122 n² operations, 5 visits to n² cells, 33 steps     →   1.2 G
                        anew: 8 n³ operations, 12 visits to n² cells, 4 steps            →   65 G

The unit is an operation of a product of large matrices. Memory is slow: however little is done with the cells of a
matrix, to have them from there takes longer. So a trigger that visits many views, or one again and again for vectors,
may be dearer than an evaluation of more operations on fewer matrices, which stay in the cache.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC, BOOLEAN
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.expression_cost import Guess, cost
from squallpy.maintain.matrix.materialise import IncrementalProgram, MatrixTrigger, MatrixUpdate
from squallpy.maintain.matrix.matrix_expressions import Diagonal, Matrix, Product, add, names, product
from squallpy.maintain.matrix.meta_information import NOTHING
from squallpy.maintain.matrix.view_visits import Visited, count_visits

# measured, in operations of a product of large matrices
FEW = 1.3  # an operation on few columns
NEAR, FAR = 6.0, 40.0  # to visit eight bytes in the cache, and in memory
STEP = 1e6  # a step by itself
CACHE = 32 << 20  # bytes
SPARSE = 1 / 32  # density up to which an input is kept as the cells that are not zero
CELL, ALONE = 5, 10.0  # words that such a cell counts as, and an operation on it
BITS, FEW_BITS = 0.2, 2.0  # an operation on 64 truth values: a product stops where a row is full
LEFT = 0.25  # share of what follows from an update, where only what is left of it matters; nobody knows beforehand


@dataclass(frozen=True, slots=True)
class Price:
    """Operations, visits and steps of a trigger or an evaluation.

    Args:
        near: The share of the visited matrices that fits in the cache.
    """

    operations: float
    visited: float
    """Words of eight bytes, each time that they are visited."""
    near: float
    steps: int
    weight: float = 1.0
    """The cost of one operation."""

    @property
    def total(self) -> float:
        word = NEAR * self.near + FAR * (1 - self.near)
        return self.operations * self.weight + self.visited * word + self.steps * STEP


class TriggerPricing:
    """Prices of a trigger for updates of any rank; `left`: the share that may be expected (LEFT)."""

    def __init__(self, maintained: IncrementalProgram, trigger: MatrixTrigger, left: float = 1.0) -> None:
        self._maintained, self._rank = maintained, trigger.u.cols.symbols[0][0]
        views = set(maintained.matrices)
        matters = Visited(trigger, views).count_partial_updates
        self._done = [(step.value, left ** matters(step.value)) for step in trigger.steps]
        self._done += [(_addition(update), left ** matters(update.u, update.v)) for update in trigger.updates]
        self._visited = {
            view: sum(left**turn if turn < math.inf else 0 for turn in turns)
            for view, turns in count_visits(trigger, views).items()
        }

    def price(self, rank: int, sizes: Sizes) -> Price:
        """Estimate the cost of the trigger for an update of at most a rank."""
        pricing = _Pricing(self._maintained, Guess({**sizes, self._rank: rank}))
        return pricing.price(self._done, self._visited, few=True)


def _addition(update: MatrixUpdate) -> Matrix:
    """Return what is computed to update a view; a dense delta has no product."""
    if isinstance(update.u, Diagonal) or isinstance(update.v, Diagonal):
        return add(update.view, update.v if isinstance(update.u, Diagonal) else update.u)
    return product(update.u, update.v)


def trigger_price(
    maintained: IncrementalProgram, trigger: MatrixTrigger, rank: int, sizes: Sizes, left: float = 1.0
) -> Price:
    """Estimate the cost of a trigger for an update of at most a rank.

    Args:
        left: The share of the update's consequences that may be expected (LEFT).
    """
    return TriggerPricing(maintained, trigger, left).price(rank, sizes)


def evaluation_price(maintained: IncrementalProgram, sizes: Sizes) -> Price:
    """Estimate the cost of the whole program: each definition reads its operands and writes its result."""
    definitions = maintained.anf.definitions
    visited = Counter(name for d in definitions for name in (d.name.name, *names(d.value)))
    return _Pricing(maintained, Guess(sizes)).price([(d.value, 1.0) for d in definitions], visited, few=False)


def sparse_inputs(maintained: IncrementalProgram) -> dict[str, float]:
    """Collect the inputs that are known to be stored as cells, with their densities."""
    program, found = maintained.program, dict[str, float]()
    for name in (i.name.name for i in program.inputs if program.ring.dtype == "float64"):
        density = maintained.anf.facts.get(name, NOTHING).density
        if density is not None and density <= SPARSE:
            found[name] = density
    return found


class _Pricing:
    """Prices at some dimensions."""

    def __init__(self, maintained: IncrementalProgram, guess: Guess) -> None:
        program, anf = maintained.program, maintained.anf
        self._ring, self._facts, self._guess = program.ring, anf.facts, guess
        self._sparse = sparse_inputs(maintained)
        self._names = {name.name: name for name in (*program.names(), *map(anf.source, anf.constants))}

    def price(self, done: Iterable[tuple[Matrix, float]], visited: Mapping[str, float], few: bool) -> Price:
        """Estimate the cost of operations, given the share of each that is done, and of visits to matrices."""
        counts = [
            cost(matrix, self._guess, self._facts) * fraction * self._sparse_fraction(matrix)
            for matrix, fraction in done
        ]
        words = {name: self._words(name) for name in visited}
        room, moved = 8 * sum(words.values()), sum(words[name] * times for name, times in visited.items())
        weight = FEW if few else 1.0
        if self._ring is BOOLEAN:
            weight = FEW_BITS if few else BITS
        near = min(1.0, CACHE / room) if room else 1.0
        return Price(sum(counts) / (64 if self._ring is BOOLEAN else 1), moved, near, len(counts), weight)

    def _words(self, name: str) -> float:
        """Count the words of eight bytes of a matrix; of a symmetric one half is kept up to date."""
        fraction = 1 / 64 if self._ring is BOOLEAN else np.dtype(self._ring.dtype).itemsize / 8
        half = self._ring is ARITHMETIC and self._facts.get(name, NOTHING).symmetric
        fraction *= 0.5 if half else 1
        if name in self._sparse:
            fraction = self._sparse[name] * CELL
        return self._guess.cells(self._names[name]) * fraction

    def _sparse_fraction(self, matrix: Matrix) -> float:
        """Estimate a product by a sparse factor relative to a dense one; two sparse ones are multiplied as dense."""
        if not isinstance(matrix, Product):
            return 1.0
        found = [self._sparse[name] for factor in matrix.factors for name in names(factor) & set(self._sparse)]
        return min(1.0, ALONE * found[0]) if len(found) == 1 else 1.0
