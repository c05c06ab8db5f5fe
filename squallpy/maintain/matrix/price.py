"""What triggers and evaluations take: operations, cells of matrices that are visited, and steps, in one unit.

    A^16, n = 2,000     a trigger: 122 n² operations, 5 visits to n² cells, 33 steps     →   1.2 G
                        anew: 8 n³ operations, 12 visits to n² cells, 4 steps            →   65 G

The unit is an operation of a product of large matrices. Memory is slow: however little is done with the cells of a
matrix, to have them from there takes longer. So a trigger that visits many views, or one again and again for vectors,
may be dearer than an evaluation of more operations on fewer matrices, which stay in the cache.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from squallpy.base.semirings import ARITHMETIC, BOOLEAN
from squallpy.maintain.matrix.cost import Guess, operations
from squallpy.maintain.matrix.materialise import Maintained, Trigger
from squallpy.maintain.matrix.meta import NOTHING
from squallpy.maintain.matrix.nodes import Matrix, names, product
from squallpy.maintain.matrix.sizes import Sizes
from squallpy.maintain.matrix.visits import visits

# measured, in operations of a product of large matrices
FEW = 1.3  # an operation on few columns
NEAR, FAR = 6.0, 40.0  # to visit eight bytes in the cache, and in memory
STEP = 1e6  # a step by itself
CACHE = 32 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Price:
    """What is done; `near`: the share of the matrices that are visited for which there is room in the cache."""

    operations: float
    visited: float
    """Words of eight bytes, each time that they are visited."""
    near: float
    steps: int
    weight: float = 1.0
    """What an operation takes."""

    @property
    def total(self) -> float:
        word = NEAR * self.near + FAR * (1 - self.near)
        return self.operations * self.weight + self.visited * word + self.steps * STEP


def trigger_price(maintained: Maintained, trigger: Trigger, rank: int, sizes: Sizes) -> Price:
    """What a trigger takes for an update of a rank."""
    added = [product(update.u, update.v) for update in trigger.updates]
    guess = Guess({**sizes, trigger.u.cols.symbols[0][0]: rank})
    visited = visits(trigger, set(maintained.matrices))
    return _price(maintained, [s.value for s in trigger.steps] + added, visited, guess, FEW)


def evaluation_price(maintained: Maintained, sizes: Sizes) -> Price:
    """What the whole program takes: each definition reads its operands and writes what it makes."""
    definitions = maintained.anf.definitions
    visited = Counter(name for d in definitions for name in (d.name.name, *names(d.value)))
    return _price(maintained, [d.value for d in definitions], visited, Guess(sizes))


def _price(
    maintained: Maintained, done: Sequence[Matrix], visited: Mapping[str, int], guess: Guess, weight: float = 1.0
) -> Price:
    program, facts = maintained.program, maintained.anf.facts
    # NB: an operation on truth values is one on 64 of them
    share = 1 / 64 if program.ring is BOOLEAN else np.dtype(program.ring.dtype).itemsize / 8
    known = {name.name: name for name in (*program.names(), *map(maintained.anf.source, maintained.anf.constants))}

    def words(name: str) -> float:
        half = program.ring is ARITHMETIC and facts.get(name, NOTHING).symmetric
        return guess.cells(known[name]) * share / (2 if half else 1)

    room, moved = sum(map(words, visited)) * 8, sum(words(name) * times for name, times in visited.items())
    count = operations(done, guess, facts) * (share if program.ring is BOOLEAN else 1)
    return Price(count, moved, min(1.0, CACHE / room) if room else 1.0, len(done), weight)
