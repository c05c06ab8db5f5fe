"""Payload rings: the values that a view stores for each key, with their sum and product.

A view maps a key to one *payload*, an element of a direct product of rings: one for each aggregate ("lane").
Addition and multiplication are lane-wise; a scalar (a multiplicity) embeds diagonally. Lanes are stored as int64
*words* side by side in one row, so that one generic kernel serves every query.

    SUM(price), COUNT(*)   →   Payload((EXACT, COUNT))   →   words  [price.lo, price.hi, n]

A lane is a scalar ring, of a word or a few, or a block, such as a cofactor matrix.

Source: generalised multiset relations, `dbtoaster-batch-ivm` §3.1; rings as payloads, `fivm-on-flink` §2.
"""

from squallpy.base.rings.cofactor import Cofactor
from squallpy.base.rings.payload import LaneRing, Payload
from squallpy.base.rings.scalar import Ring

__all__ = ["Cofactor", "LaneRing", "Payload", "Ring"]
