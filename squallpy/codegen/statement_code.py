"""Printed statements as data: their text, and what they have to be given."""

from typing import Final

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor
from squallpy.base.rings.payload import LaneRing

ONLY_CHECKED: Final = -3
"""An answer of a statement: each of its rows has one, but they have no room together, and nothing was changed."""


@dataclass(frozen=True, slots=True)
class RingFactor:
    """A factor of a product of cofactor rings: the word of a row that has its place, an offset there, and its ring.

    Args:
        ring: COUNT scales a product; None: the word is a double, the variable `number` of the view tree, and lifted.
    """

    word: int
    offset: int
    ring: LaneRing | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class ProductCode:
    """A product that a statement adds up: rows of so many words, so many at once, say where its factors are."""

    ring: Cofactor
    factors: tuple[RingFactor, ...]
    width: int
    rows: int


@dataclass(frozen=True, slots=True)
class StatementCode:
    """A printed statement.

    Args:
        pools: What it looks up, notes and adds to: its arguments, as frames.
        added: Those of them, the last, that it lets grow: touched groups and sorted indexes of the target.
        constants: Texts that it has.
        product: The product of cofactor rings that it adds up, which is an argument, too.
        room: Words that it uses: of the rows that it adds together, and of ranges.
        is_checked: It may have no answer. It is called to try (`trial`), which changes nothing unless all rows have
            one and room together, and if only the room is missing once more.
    """

    function: str
    text: str
    delta: str
    target: str
    pools: tuple[str, ...]
    added: tuple[str, ...]
    constants: tuple[str, ...]
    product: ProductCode | None = None
    room: int = 0
    is_checked: bool = False


def touched_name(view: str) -> str:
    """Name the pool of groups of a view that a batch touches, with their payloads before it."""
    return f"{view} before"


def order_name(view: str, number: int) -> str:
    """Name a sorted index of a view as what a statement adds to."""
    return f"{view} sorted {number}"
