"""New columns, for the binder and for passes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import count

from squallpy.base.records import dataclass
from squallpy.base.types import Type
from squallpy.logical.expressions import Column, Expr, Literal

_LONGEST = 72  # characters of an expression that names its column


def short_name(text: str) -> str:
    """Shorten the text of an expression that names a column: MAX_BY(s, CASE WHEN …) → MAX_BY, (LPAD(…) || … → LPAD"""
    word = None if len(text) <= _LONGEST else re.search(r"\w+", text)
    return word[0] if word else text


@dataclass(frozen=True, slots=True)
class ColumnAllocator:
    """A source of columns with ids that no other column of a query has."""

    ids: Iterator[int] = field(default_factory=lambda: count(1), kw_only=True)

    def column(self, name: str, type: Type, nullable: bool) -> Column:
        """Make a new column."""
        return Column(next(self.ids), name, type, nullable)

    def like(self, *exprs: Expr) -> Column:
        """Make a column for the values of any of these, called like the first that is not NULL."""
        named = next((e for e in exprs if e != Literal(None, e.type)), None)
        name = "NULL" if named is None else named.name if isinstance(named, Column) else short_name(str(named))
        return self.column(name, exprs[0].type, any(e.nullable for e in exprs))

    def copies(self, exprs: Iterable[Expr]) -> tuple[tuple[Column, Expr], ...]:
        """Make a column for each expression, and pair it with that."""
        return tuple((self.like(expr), expr) for expr in exprs)
