"""Offsets of a topic's partitions, as options of Spark's source write them.

'earliest'                      →   EARLIEST for all partitions
'{"orders": {"0": 23, "1": -2}}'   →   {"0": 23, "1": EARLIEST}
"""

import json
from collections.abc import Mapping

from squallpy.base.errors import SquallError

LATEST, EARLIEST = -1, -2
WORDS = {"earliest": EARLIEST, "latest": LATEST}
STARTING, ENDING = "startingOffsets", "endingOffsets"
"""The options: where a run without a checkpoint begins, and the offsets that no run reads past."""
ALLOWED = {STARTING: (EARLIEST, LATEST), ENDING: (LATEST,)}
Offsets = int | Mapping[str, int]
"""An offset of all partitions, or that of each."""


def parse_offsets(option: str, value: str, topic: str | None = None) -> Offsets:
    """Read an option with offsets; SQ7002 if it has none, or those of another topic.

    Args:
        topic: That of the stream, if it is known yet.
    """
    words = [word for word, offset in WORDS.items() if offset in ALLOWED[option]]
    if value.lower() in words:
        return WORDS[value.lower()]
    try:
        found = json.loads(value)
    except ValueError:
        found = None
    hint = f"write {' or '.join(words)}, or " + '{"topic": {"0": 23, "1": -1}}: -1 is the latest offset'
    hint += ", -2 the earliest" if EARLIEST in ALLOWED[option] else ""
    if not isinstance(found, dict) or len(found) != 1 or not all(_are_offsets(each, option) for each in found.values()):
        raise SquallError("SQ7002", f'option "{option}" cannot be "{value}"', hint=hint)
    ((name, offsets),) = found.items()
    if topic not in (None, name):
        message = f'option "{option}" has offsets of the topic "{name}", and the stream reads "{topic}"'
        raise SquallError("SQ7002", message)
    return dict(offsets)


def _are_offsets(some: object, option: str) -> bool:
    """True if each partition of an object has an offset."""
    return (
        isinstance(some, dict)
        and bool(some)
        and all(name.isdecimal() and str(int(name)) == name for name in some)
        and all(type(at) is int and (at >= 0 or at in ALLOWED[option]) for at in some.values())
    )
