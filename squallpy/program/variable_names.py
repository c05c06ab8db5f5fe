"""Readable names of the variables of a scope."""

from collections.abc import Iterable

from squallpy.base.free_names import FreeNames
from squallpy.logical.expressions import Column, Expr, transform

WIDTH = 112  # of a printed line


class Names:
    """A readable name for each variable of a scope; a name taken by another variable gets a number."""

    def __init__(self, scope: Iterable[Column]) -> None:
        self._names: dict[int, str] = {}
        free = FreeNames()
        for v in scope:
            if v.id not in self._names:
                self._names[v.id] = free.take(v.name)

    def __call__(self, v: Column) -> str:
        return self._names.get(v.id, v.name)

    def expr(self, expr: Expr) -> str:
        named = transform(expr, lambda e: Column(e.id, self(e), e.type, e.nullable) if isinstance(e, Column) else None)
        return str(named)

    def list(self, many: Iterable[Column]) -> str:
        return ", ".join(map(self, many))
