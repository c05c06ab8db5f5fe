"""Statistics that joiners and readers report of a batch, from which migration policies decide."""

from collections.abc import Mapping

from squallpy.physical.joins.mapping import Side

JoinerStatistics = Mapping[str, Mapping[str, int]]
"""Statistics of each joiner.

`r`, `s`: the tuples of each relation that arrived in a batch; `r bytes`, `s bytes`: their bytes; `R`, `S`: the tuples
that the joiner has now.
"""

OTHER_KEYS = ""  # what statistics call the keys that they do not name


def name_of_keys(side: Side, sign: int) -> str:
    """Name the statistic of the keys of tuples that came, or went."""
    return f"{side.name} {sign:+}"


def total(joiners: JoinerStatistics, name: str) -> int:
    """Sum a figure of all joiners."""
    return sum(joiner[name] for joiner in joiners.values())


def loads(joiners: JoinerStatistics, count: int) -> list[int]:
    """List the tuples that each of `count` joiners has now, by its number."""
    held = {int(number): joiner["R"] + joiner["S"] for number, joiner in joiners.items()}
    return [held.get(number, 0) for number in range(count)]


def skew(joiners: JoinerStatistics, count: int) -> float:
    """Divide the tuples of the joiner with most by the mean of `count` joiners."""
    held = loads(joiners, count)
    return max(held) * count / sum(held) if any(held) else 1.0
