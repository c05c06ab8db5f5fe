"""Variable orders as a script declares them.

CREATE VARIABLE ORDER housing AS $$ … $$      used as cofactor(TABLE(…), order => 'housing')
"""

from dataclasses import field
from typing import Any

from squallpy.base.errors import Span
from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class OrderText:
    """A declared variable order; `body` is its text in the script, opaque here."""

    name: str
    body: Any = field(compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
