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

A ring of a higher degree d has the sums of all products of up to 2·d variables (a truncated polynomial algebra), hence
the sums of products of any two features that are products of up to d: those of t variables i₁ ≥ … ≥ i_t stand behind
those of fewer, in the order of these numbers, of which the lower triangle is the case t = 2. An infinity is what has no
2·d-th power.

Source: `fivm-on-flink` §4.1 to 4.4; Nikolic and Olteanu, *Incremental View Maintenance with Triple Lock Factorization
Benefits* (SIGMOD 2018), the degree-m matrix ring.
"""

from math import comb

from squallpy.base.records import dataclass

COUNT, HASH, ODD = 0, 1, 2
"""First words of the parts of an element."""
PLAIN, COMPENSATED = 4, 5
"""Kinds of block, in the lowest bits of a code; scalar rings are below them."""
POWERS = 2
"""Bit of the kinds of a degree above 1, whose code has the highest power and the number of sums, too."""
KIND_BITS, SIZE_BITS = 3, 20
POWER_SHIFT = KIND_BITS + SIZE_BITS
VALUES_SHIFT = POWER_SHIFT + 4
MOST_DEGREE = 4


@dataclass(frozen=True, slots=True)
class Cofactor:
    """The cofactor ring over the variables `first`, …, `first + size − 1` of a view tree.

    Args:
        degree: Of the products of variables that are features.
    """

    first: int
    size: int
    compensated: bool = True
    degree: int = 1

    def __post_init__(self) -> None:
        assert self.first >= 0 and self.size > 0 and 1 <= self.degree <= MOST_DEGREE

    @property
    def values(self) -> int:
        """Number of sums and sums of products."""
        return comb(self.size + 2 * self.degree, self.size) - 1

    @property
    def words(self) -> int:
        """Words of an element."""
        return ODD + self.size + self.values * (2 if self.compensated else 1)

    @property
    def code(self) -> int:
        """The ring as kernels know it: its kind, and how many variables it has."""
        code = self.size << KIND_BITS | (COMPENSATED if self.compensated else PLAIN)
        if self.degree > 1:
            code |= POWERS | 2 * self.degree << POWER_SHIFT | self.values << VALUES_SHIFT
        return code

    @property
    def name(self) -> str:
        """The ring in EXPLAIN: COFACTOR[3..7]."""
        degree = f" of degree {self.degree}" if self.degree > 1 else ""
        return f"COFACTOR[{self.first}..{self.first + self.size - 1}]{degree}"
