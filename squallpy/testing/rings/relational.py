"""The relational ring: relations as payloads, so that a view tree lists the rows of its join.

g_A(1) · (g_B(2) + g_B(3))   →   {(A: 1, B: 2), (A: 1, B: 3)}

A tuple has values for some variables; a sum of relations is their union, a product their natural join, with
multiplicities.

Source: Nikolic and Olteanu, *Incremental View Maintenance with Triple Lock Factorization Benefits* (SIGMOD 2018), §6.
"""

from collections.abc import Mapping

from squallpy.testing.rings.abstract_ring import FormalSums

Tuple = frozenset[tuple[str, object]]
"""Variables with their values."""


class Relational(FormalSums[Tuple]):
    """Relations over any variables, as tuples with multiplicities."""

    @property
    def unit(self) -> Tuple:
        return frozenset()

    def product(self, a: Tuple, b: Tuple) -> Tuple | None:
        both = a | b
        return both if len(dict(both)) == len(both) else None

    def lift(self, variable: str, value: object) -> Mapping[Tuple, float]:
        return {frozenset(((variable, value),)): 1}
