"""Sizes of views, in words of 8 bytes.

A payload is one count without lifted variables, and of m of them: a count and a hash, then of each variable a count of
∞, −∞ and NaN, its sum, and its sums of products with itself and those before.

Source: `fivm-on-flink` §4.6, where the sizes of the second input are misprinted: g₂(1 + n₂ + n₂(n₂+1)/2 + f₂) is meant.
"""

from collections.abc import Sequence

from squallpy.base.rings import Cofactor
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.view_tree import View

PLAIN, COMPENSATED = 1, 2
"""Words of a sum: a double, or two whose sum is exact to twice as many digits."""


def payload_words(lifted: int, sum_words: int = COMPENSATED, degree: int = 1) -> int:
    """Count the words of a payload with so many lifted variables."""
    return Cofactor(0, lifted, sum_words == COMPENSATED, degree).words if lifted else 1


def count_groups(graph: JoinGraph, leaf: Leaf, keys: Sequence[Column]) -> int | None:
    """Bound the number of a relation's distinct keys by the rows of all relations with them; None if one is unknown."""
    groups = 1
    for key in keys:
        rows = [other.rows for other in graph.leaves if key in other.variables]
        known = [count for count in rows if count is not None]
        if len(known) < len(rows):
            return None
        groups *= min(known)
    return None if leaf.rows is None else min(groups, leaf.rows)


def cost_of_payloads(view: View, groups: int, sum_words: int = COMPENSATED) -> int:
    """Count the words of a view that keeps one payload a key."""
    return groups * (len(view.keys) + payload_words(len(view.lifted), sum_words))


def cost_of_rows(view: View, rows: int) -> int:
    """Count the words of a view that keeps rows of its keys and lifted variables, each with a count."""
    return rows * (len({*view.keys, *view.lifts}) + 1)
