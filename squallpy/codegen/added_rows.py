"""The steps by which a row is added up in a delta, printed: the record of its key, and the sums of its payload.

elif entered < 0 or load(last, 0) != …      appended: the next record, unless the row before has the key
entered = enter(sums, key, …)               by key: the record of the key, which is remembered
lane_0 = load(words, 0) + 1                 added to its payload
"""

from collections.abc import Iterable, Sequence
from typing import Final

from squallpy.base.rings import Cofactor, Ring
from squallpy.base.rings.payload import LaneRing
from squallpy.codegen.names import Lines

RECENT: Final = 64
"""Words of the room in which records are remembered (`kernels/delta_records.py`)."""


def store_key(lines: Lines, keys: Sequence[str], where: str) -> None:
    """Print how the words of a key are stored at an address."""
    for i, key in enumerate(keys):
        lines(f"store({where}, {i}, {key})")


def enter_key(lines: Lines, keys: Sequence[str], broad: int, may_append: bool) -> None:
    """Print how the record of a key is found or made: `entered`, where its payload is, `words`, and its key, `last`.

    Args:
        broad: Words of a payload.
        may_append: Rows are not added up by key if `appends` is not 0; if they are, records are remembered at `recent`.
    """
    differs = "".join(f" or load(last, {i}) != {key}" for i, key in enumerate(keys))
    if not may_append:
        with lines.block(f"if entered < 0{differs}:  # not the key of the row before"):
            _enter(lines, keys)
            _locate(lines, keys, broad)
        return
    with lines.block("if appends == 0:"):
        lines(f"place = recent_at(recent, {_mixed(keys)})")
        lines("entered = load(place, 0)")
        lines(f"last = key_of(sums, entered, {len(keys)})")
        with lines.block(f"if entered >= count_of(sums){differs}:"):
            _enter(lines, keys)
            lines("store(place, 0, entered)")
        _locate(lines, keys, broad)
    with lines.block(f"elif entered < 0{differs}:  # not the key of the row before"):
        lines(f"entered = append_record(sums, {len(keys)}, {broad})")
        with lines.block("if entered < 0:"):
            _enter(lines, keys)
        _locate(lines, keys, broad)
        store_key(lines, keys, "last")


def _enter(lines: Lines, keys: Sequence[str]) -> None:
    """Print the call by which the record of a key is found or made."""
    store_key(lines, keys, "key")
    lines("entered = enter(sums, key, steps, 0)")
    lines("if entered < 0:")
    lines("    return -2")


def _locate(lines: Lines, keys: Sequence[str], broad: int) -> None:
    """Print where a record is that was entered."""
    lines(f"words = words_of(sums, entered, {broad})")
    lines(f"last = key_of(sums, entered, {len(keys)})")


def _mixed(keys: Sequence[str]) -> str:
    """Print a word that differs for most keys of which few are there."""
    mixed, *others = keys
    for key in others:
        mixed = f"({mixed}) * 31 + {key}"
    return mixed


def add_lanes(lines: Lines, lanes: Iterable[tuple[str, LaneRing, int]], where: str) -> None:
    """Print how words are added to a payload; `left` is then 0 if nothing is left of what is changed.

    Args:
        lanes: Words of COUNT and EXACT lanes (of these one, sign-extended, or two with a comma), of sums of doubles
            these and, behind a comma, multiplicities, of cofactor rings a multiplicity and the doubles that are lifted;
            rings and offsets.
        where: The address of the payload.
    """
    left = []
    for value, ring, at in lanes:
        if isinstance(ring, Cofactor):
            times, *doubles = value.split(", ")
            lines("lifted = room_of(steps)")
            for i, double in enumerate(doubles):
                lines(f"store(lifted, {i}, {double})")
            left.append(f"left_{at}")
            lines(f"left_{at} = add_lifted({where} + {8 * at}, {ring.code}, {ring.first}, lifted, {times}, steps)")
            continue
        if ring >= Ring.REAL:
            left.append(f"left_{at}")
            lines(f"left_{at} = add_double({where} + {8 * at}, {value}, {ring.code}, steps)")
            continue
        lo, _, hi = value.partition(", ")
        names = [f"lane_{at + i}" for i in range(ring.words)]
        if ring is Ring.COUNT:
            lines(f"{names[0]} = load({where}, {at}) + {value}")
        else:
            given = f"load({where}, {at}), load({where}, {at + 1}), {lo}, {hi or f'sign({lo})'}"
            lines(f"{', '.join(names)} = exact_add({given})")
        for i, name in enumerate(names, at):
            lines(f"store({where}, {i}, {name})")
        left += names
    lines(f"left = {' | '.join(left)}")
