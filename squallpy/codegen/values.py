"""Values in printed code: a word, or where a text stands; and whether it is NULL."""

import struct
from typing import Final

from squallpy.base.records import dataclass
from squallpy.base.types import RANGES, Kind, Type
from squallpy.codegen.names import constant

LIMIT: Final = 2**63


@dataclass(frozen=True, slots=True)
class Value:
    """A word as Python text, an atom, 0 where it is NULL; `known` is 1 where it is not (None: everywhere)."""

    code: str
    known: str | None = None
    least: int = 0
    most: int = 1


@dataclass(frozen=True, slots=True)
class Text:
    """A text: names of where it begins and of its bytes; `known` as of a value.

    Args:
        base: The address from which it begins, printed at each use, for a dictionary may move; none: an address itself.
    """

    start: str
    length: str
    known: str | None = None
    base: str = ""

    @property
    def address(self) -> str:
        """The address at which it begins, as of now."""
        return f"{self.base} + {self.start}" if self.base else self.start

    @property
    def span(self) -> str:
        """Its address and its bytes, as arguments."""
        return f"{self.address}, {self.length}"


def bounds(type: Type) -> tuple[int, int]:
    """Return the least and the greatest word of a type."""
    if type.kind is Kind.BOOLEAN:
        return 0, 1
    if type.kind is Kind.INT:
        return -(2**31), 2**31 - 1
    if type.kind in RANGES:
        return RANGES[type.kind]
    if type.kind is Kind.DECIMAL and not type.is_wide:
        return 1 - 10**type.precision, 10**type.precision - 1
    return -LIMIT, LIMIT - 1


def real_word(value: float) -> int:
    """Return the bits of a double as a word."""
    (word,) = struct.unpack("<q", struct.pack("<d", value))
    return int(word)


def literal(value: int) -> Value:
    """Print a constant."""
    return Value(constant(value) if value >= 0 else f"({constant(value)})", None, value, value)
