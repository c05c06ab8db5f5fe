"""The layout of payloads."""

from dataclasses import field
from itertools import accumulate

from squallpy.base.records import dataclass
from squallpy.base.rings.cofactor import Cofactor
from squallpy.base.rings.scalar import Ring

LaneRing = Ring | Cofactor


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
