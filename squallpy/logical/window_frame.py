"""Frames of window functions, as they are written: ROWS, RANGE or GROUPS BETWEEN … AND …"""

from enum import Enum

from squallpy.base.records import dataclass
from squallpy.base.types import INT, Kind
from squallpy.logical.expressions import Literal

Bound = tuple[int, Literal]
"""Direction, -1 for PRECEDING, +1 for FOLLOWING and 0 for CURRENT ROW, and distance."""
CURRENT_ROW: Bound = (0, Literal(0, INT))


class FrameUnit(Enum):
    """Unit of the bounds of a frame."""

    ROWS = "ROWS"
    GROUPS = "GROUPS"
    RANGE = "RANGE"


@dataclass(frozen=True, slots=True)
class WindowFrame:
    """Rows of a partition from `start` to `end`, None where that is UNBOUNDED."""

    unit: FrameUnit = FrameUnit.RANGE
    start: Bound | None = None
    end: Bound | None = CURRENT_ROW

    @property
    def is_open(self) -> bool:
        """True if it reaches from an end of the partition to the other, or to the current row."""
        return (self.start, self.end) in ((None, None), (None, CURRENT_ROW), (CURRENT_ROW, None))

    def __str__(self) -> str:
        return (
            f"{self.unit.value} BETWEEN {_bound_text(self.start, 'PRECEDING')} AND {_bound_text(self.end, 'FOLLOWING')}"
        )


DEFAULT_FRAME = WindowFrame()


def _bound_text(bound: Bound | None, side: str) -> str:
    if bound is None:
        return f"UNBOUNDED {side}"
    way, distance = bound
    text = str(distance)
    if distance.type.kind is Kind.INTERVAL:
        months, days, micros = distance.value
        parts = ((months, "MONTH"), (days, "DAY"), (micros / 1_000_000, "SECOND"))
        text = "INTERVAL " + " ".join(f"{count:.15g} {unit}" for count, unit in parts if count)
    return f"{text} {'PRECEDING' if way < 0 else 'FOLLOWING'}" if way else "CURRENT ROW"
