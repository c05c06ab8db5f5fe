"""The layout of payloads."""

from dataclasses import field
from itertools import accumulate
from typing import Final

from squallpy.base.records import dataclass
from squallpy.base.rings.cofactor import Cofactor
from squallpy.base.rings.scalar import Ring

LaneRing = Ring | Cofactor
_MOST_NARROW: Final = 16  # words of a payload that may be narrow
ROOMS: Final = 8
"""Number of narrow payloads of a view that can be read at a time; the first is for those who add to it."""


@dataclass(frozen=True, slots=True)
class Payload:
    """The layout of one payload row: its lanes in order."""

    rings: tuple[LaneRing, ...]
    offsets: tuple[int, ...] = field(init=False, compare=False)
    """First word of each lane."""
    width: int = field(init=False, compare=False)
    """Words in a row."""

    def __post_init__(self) -> None:
        ends = tuple(accumulate((ring.words for ring in self.rings), initial=0))
        object.__setattr__(self, "offsets", ends[:-1])
        object.__setattr__(self, "width", ends[-1])

    @property
    def can_be_narrow(self) -> bool:
        """True if its words may have half of their bits in memory while all fit: a few counts and exact sums."""
        return self.width <= _MOST_NARROW and {*self.rings} <= {Ring.COUNT, Ring.EXACT}
