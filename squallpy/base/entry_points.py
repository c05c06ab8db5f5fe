"""Entry points: what other packages that are installed bring, by group and name.

[project.entry-points."squallpy.sources"]      in the pyproject.toml of such a package
ticks = "ticks_for_squall:Ticks"               →   USING ticks
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from squallpy.base.errors import SquallError

SOURCES, SINKS = "squallpy.sources", "squallpy.sinks"


def names_of(group: str) -> tuple[str, ...]:
    """List the names in a group, in lower case."""
    return tuple(sorted(entry.name.lower() for entry in entry_points(group=group)))


def load(group: str, name: str) -> Any:
    """Import what a name, in any case, stands for in a group; SQ8009 if that fails or two packages have the name."""
    found = [entry for entry in entry_points(group=group) if entry.name.lower() == name.lower()]
    if len({entry.value for entry in found}) != 1:
        packages = f", of the packages {_packages(found)}" if found else ""
        hint = "uninstall one" if found else "install the package that brings it"
        raise SquallError(
            "SQ8009", f'{len(found) or "no"} entry points of {group} are called "{name}"{packages}', None, hint
        )
    try:
        return found[0].load()
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())}"
        message = f"{found[0].value} of the package {_packages(found)} cannot be imported: {why}"
        raise SquallError("SQ8009", message, hint="see that it is made for this version of squallpy") from None


def _packages(found: Iterable[EntryPoint]) -> str:
    return " and ".join(sorted({entry.dist.name if entry.dist else "?" for entry in found}))
