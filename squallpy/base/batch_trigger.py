"""Triggers: when a batch of streams without end begins, and whether there is a last one.

BatchTrigger.parse("available-now")   →   batches until nothing more has come
BatchTrigger.parse("10 seconds")      →   a batch every ten seconds, if anything has come
"""

import re

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass

_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_NAMES = ("as-it-comes", "available-now", "once")


def parse_interval(text: str) -> float | None:
    """Read an interval: '10 seconds' → 10.0; None if it is none, or not above 0."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower())
    return float(found[1]) * _UNITS[found[2]] or None if found and found[2] in _UNITS else None


@dataclass(frozen=True, slots=True)
class BatchTrigger:
    """A trigger; by default a batch begins when anything has come, without end.

    Args:
        seconds: The least time from the beginning of a batch to that of the next one.
        ends: The last batch is the one after which nothing more has come.
        once: There is one batch, with all that is there.
    """

    seconds: float = 0.0
    ends: bool = False
    once: bool = False

    @staticmethod
    def parse(text: str) -> "BatchTrigger":
        """Read the name of a trigger, or an interval; raises SQ7003."""
        name = text.strip().lower()
        if name in _NAMES:
            return BatchTrigger(ends=name != "as-it-comes", once=name == "once")
        if seconds := parse_interval(name):
            return BatchTrigger(seconds)
        hint = "an interval is such as '10 seconds', '500 ms'" if name[:1].isdigit() else nearest(name, _NAMES)
        raise SquallError("SQ7003", f'--trigger cannot be "{text}"', hint=hint)


AS_IT_COMES = BatchTrigger()
