"""The cofactor ring: count, sums and sums of products of some variables, from which models are read off.

    g(x₀ = 2) · g(x₁ = 5)   →   (1, [2, 5], [4; 10, 25])

A sum adds component by component. A product is that of a join: (c, s, Q) · (c′, s′, Q′) has the count c·c′, the sums
c′·s and c·s′, the blocks c′·Q and c·Q′ on the diagonal, and s·s′ᵀ beside them.

Variables are numbered through a query's view tree, and an element knows a range of them. As the factors of a product
know ranges that do not overlap, each is a block of the product (`fivm-on-flink` §4.3: no map of indexes is needed).

An element is a row of int64 words: [c, h, odd, values, errors]. `values` are the m sums and then, row by row, the lower
triangle of Q; `errors`, if sums are compensated, are the lower halves of these as double-doubles. `c` is exact. `h` is
the sum, over the rows, of the product of a hash of each lifted value, modulo 2⁶⁴: an element is zero if both are 0,
whatever rounding has left, and also where deletes came before their inserts. `h` of a product is the product of `h`s.
`odd` counts, for each variable, how often it was ∞, −∞ or NaN, for which 0 is lifted: so the sums are right again once
such a row is deleted. A value whose square is no double counts as an infinity.

Source: `fivm-on-flink` §4.1 to 4.4; Nikolic and Olteanu, *Incremental View Maintenance with Triple Lock Factorization
Benefits* (SIGMOD 2018), the degree-m matrix ring.
"""

from dataclasses import dataclass

COUNT, HASH, ODD = 0, 1, 2
"""First words of the parts of an element."""
PLAIN, COMPENSATED = 4, 5
"""Kinds of block, in the lowest bits of a code; scalar rings are below them."""
KIND_BITS = 3


@dataclass(frozen=True, slots=True)
class Cofactor:
    """The cofactor ring over the variables `first`, …, `first + size − 1` of a view tree."""

    first: int
    size: int
    compensated: bool = True

    def __post_init__(self) -> None:
        assert self.first >= 0 and self.size > 0

    @property
    def values(self) -> int:
        """Number of sums and sums of products."""
        return self.size + self.size * (self.size + 1) // 2

    @property
    def words(self) -> int:
        """Words of an element."""
        return ODD + self.size + self.values * (2 if self.compensated else 1)

    @property
    def code(self) -> int:
        """The ring as kernels know it: its kind, and how many variables it has."""
        return self.size << KIND_BITS | (COMPENSATED if self.compensated else PLAIN)

    @property
    def name(self) -> str:
        """The ring in EXPLAIN: COFACTOR[3..7]."""
        return f"COFACTOR[{self.first}..{self.first + self.size - 1}]"
