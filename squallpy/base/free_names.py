"""Names that are told apart by numbers."""

from collections.abc import Iterable, Iterator
from itertools import chain, count


class FreeNames:
    """The names that are taken in a scope, compared without case: taking a, b, A gives a, b, A_2."""

    def __init__(self, taken: Iterable[str] = (), mark: str = "_") -> None:
        """Begin with some names.

        Args:
            mark: Stands before a number.
        """
        self._taken, self._mark = {name.lower() for name in taken}, mark
        self._numbers: dict[str, Iterator[int]] = {}

    def take(self, *names: str) -> str:
        """Take the first of some names that is free, else the last of them with the first number from 2 on."""
        numbers = self._numbers.setdefault(names[-1].lower(), count(2))
        candidates = chain(names, (f"{names[-1]}{self._mark}{number}" for number in numbers))
        free = next(name for name in candidates if name.lower() not in self._taken)
        self._taken.add(free.lower())
        return free


def distinct_names(names: Iterable[str]) -> list[str]:
    """Number repeated names: a, b, A → a, b, A_2"""
    free = FreeNames()
    return [free.take(name) for name in names]
