"""Physical choices of a component: its partitioning scheme, its join operator, its parallelism.

hash, hash(o_custkey)    the state of both inputs by the hash of its keys, or of some
broadcast(nation)        that of an input at every partition
grid                     the inputs by rows and columns of a grid of partitions, whatever the predicate
single                   the groups of an aggregate in one partition
"""

import re

from squallpy.base.errors import SquallError, nearest
from squallpy.base.pinned_component import BROADCAST, GRID, HASH, PARTITIONINGS, SINGLE
from squallpy.base.records import dataclass
from squallpy.base.settings import BINARY_OPERATORS, MOST_PARTITIONS, JoinOperator

_BY_HASH = (JoinOperator.SHJ.value, JoinOperator.HYBRID.value)


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices as they were made; what is empty, or 0, is left to the cost model.

    Args:
        arguments: What stands in the parentheses of the partitioning.
    """

    partitioning: str = ""
    arguments: tuple[str, ...] = ()
    operator: str = ""
    parallelism: int = 0


def read_choices(
    partitioning: str | None, operator: str | None, parallelism: int | None, schemes: tuple[str, ...]
) -> Choices:
    """Read the choices of a component that allows some partitionings; SQ7003 for those that contradict each other."""
    operator = _read_operator(operator) if operator else ""
    scheme, arguments = _read_scheme(partitioning, schemes) if partitioning else ("", ())
    if operator and scheme not in ("", _scheme_of(operator)):
        message = f"operator {operator} does not go with partitioning {scheme}"
        raise SquallError("SQ7003", message, hint=f"it is {_scheme_of(operator)}; leave one of them out")
    if operator and _scheme_of(operator) not in schemes:
        others = ", ".join(each for each in BINARY_OPERATORS if _scheme_of(each) in schemes)
        raise SquallError("SQ7003", f"operator {operator} needs an equality", hint=f"use {others}")
    if scheme == GRID and not operator:
        operator = JoinOperator.DYNAMIC.value
    scheme = scheme or (_scheme_of(operator) if operator else "")
    if parallelism is not None:
        check_parallelism(parallelism)
        if scheme in (BROADCAST, SINGLE):
            message = f"a parallelism does not go with partitioning {scheme}"
            raise SquallError("SQ7003", message, hint="leave it out")
        if operator == JoinOperator.HYBRID.value:
            hint = "leave it out, or use SHJ"
            raise SquallError("SQ7003", "Hybrid gives heavy keys all partitions, and has no parallelism", hint=hint)
        scheme = scheme or schemes[0]
    if scheme == GRID and not operator:
        operator = JoinOperator.DYNAMIC.value
    return Choices(scheme, arguments, operator, parallelism or 0)


def check_parallelism(parallelism: int) -> None:
    """Raise SQ7003 for a parallelism that is out of range."""
    if not 1 <= parallelism <= MOST_PARTITIONS:
        raise SquallError("SQ7003", f"parallelism is from 1 to {MOST_PARTITIONS:,}, not {parallelism}")


def _scheme_of(operator: str) -> str:
    return HASH if operator in _BY_HASH else GRID


def _read_operator(name: str) -> str:
    found: str | None = next((each for each in BINARY_OPERATORS if each.lower() == name.lower()), None)
    if found is None:
        raise SquallError("SQ7003", f'no join operator is called "{name}"', hint=nearest(name, BINARY_OPERATORS))
    return found


def _read_scheme(text: str, schemes: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Read a scheme with its arguments: hash(a, b)  →  "hash", ("a", "b")"""
    found = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text, re.DOTALL)
    scheme = str(found[1]).lower() if found else ""
    if scheme not in PARTITIONINGS:
        raise SquallError("SQ7003", f'no partitioning is called "{text}"', hint=nearest(text, schemes))
    if scheme not in schemes:
        raise SquallError("SQ7003", f"partitioning {scheme} is not for it", hint=f"use {' or '.join(schemes)}")
    assert found
    return scheme, tuple(each.strip() for each in found[2].split(",")) if found[2] else ()
