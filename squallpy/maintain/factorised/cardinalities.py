"""Cardinalities of the views of a join, estimated by the rows of its relations.

fact(k, j, x) 60,000 rows, dimk(k) 600, dimj(j) 4,000   →   a view by (k, j) has 59,256 keys, one by (k) 600

A join variable has no more values than the smallest of the relations that have it has rows. Rows are as if drawn at
random from the combinations of their keys' values.
"""

from collections.abc import Collection, Iterable, Mapping
from math import exp, prod

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf

_MANY = 1e6
"""Combinations for each row, beyond which none is there twice, as far as doubles tell."""


@dataclass(frozen=True, slots=True)
class Records:
    """The records that a join finds in a view: the variables that they bind, and how many there are."""

    variables: tuple[Column, ...]
    count: float


@dataclass(frozen=True, slots=True)
class Cardinalities:
    """Estimates for a join, by the rows of each leaf, of which each has some.

    Args:
        changing: Leaves whose rows are counted as changes, which may all be of one key.
    """

    graph: JoinGraph
    rows: Mapping[str, int]
    changing: Collection[str] = ()

    @property
    def largest(self) -> Leaf:
        """The leaf with most rows, the first of several."""
        return max(self.graph.leaves, key=lambda leaf: self.rows[leaf.name])

    @property
    def words(self) -> int:
        """The words of all columns that are read."""
        return sum(self.rows[leaf.name] * len(leaf.variables) for leaf in self.graph.leaves)

    def rows_of(self, leaves: Iterable[Leaf]) -> float:
        """Count the rows of leaves that are joined without a condition."""
        return float(prod(self.rows[leaf.name] for leaf in leaves))

    def values(self, variable: Column, *, is_least: bool = False) -> float:
        """Bound the distinct values of a variable, or those that it has at least."""
        having = [leaf for leaf in self.graph.leaves if variable in leaf.variables]
        if is_least and any(leaf.name in self.changing and leaf is not self.largest for leaf in having):
            return 1
        return min(self.rows[leaf.name] for leaf in having)

    def keys(
        self, variables: Collection[Column], rows: float, leaves: Collection[Leaf], *, is_least: bool = False
    ) -> float:
        """Estimate how many distinct values of some variables so many rows have.

        Args:
            leaves: Those that the rows are of. Another one bounds the combinations of the variables that it has.
            is_least: Of leaves whose rows are changes all may be of one key.
        """
        most = prod(self.values(v, is_least=is_least) for v in variables)
        for leaf in self.graph.leaves:
            if leaf not in leaves:
                others = (self.values(v) for v in variables if v not in leaf.variables)
                most = min(most, prod(others, start=float(self.rows[leaf.name])))
        if not variables:
            return 1.0
        return most * (1 - exp(-rows / most)) if most < _MANY * rows else rows

    def matches(self, leaf: Leaf) -> float:
        """Estimate how many rows of a leaf match a row of the others."""
        shared = [v for v in leaf.variables if sum(v in other.variables for other in self.graph.leaves) > 1]
        return self.rows[leaf.name] / self.keys(shared, self.rows[leaf.name], (leaf,), is_least=True)

    def joined(self, inputs: Iterable[Records]) -> float:
        """Estimate the rows of a join: those of the largest input, each with the records that it finds in others."""
        first, *others = sorted(inputs, key=lambda each: -each.count)
        found, bound = first.count, {*first.variables}
        while others:
            others.sort(key=lambda each: len({*each.variables} - bound))
            each, *others = others
            apart = prod(self.values(v) for v in each.variables if v in bound)
            found *= each.count / max(1.0, min(apart, each.count))
            bound.update(each.variables)
        return found
