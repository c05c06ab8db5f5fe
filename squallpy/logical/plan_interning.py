"""Interning of plans: plans that differ only in names get the same number.

    SELECT a.x FROM r AS a WHERE a.y > 0        SELECT b.x FROM r AS b WHERE b.y > 0        both are number 2

The key of an operator consists of its inputs' numbers and its own fields, with columns by position; so it does not
depend on the operator's position, and a shared operator is numbered once.
"""

from collections.abc import Hashable, Mapping
from dataclasses import fields

from squallpy.base.types import Type
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expressions import Call, Case, Cast, Column
from squallpy.logical.nodes import Node, Scan


class PlanInterner:
    """Numbers of operators, equal for equal operators."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._cache: dict[int, tuple[Node, int]] = {}  # by id; keeps the nodes alive, so that no other gets their id

    def number(self, node: Node) -> int:
        """Number an operator with its inputs."""
        if id(node) not in self._cache:
            key = self._key(node)
            self._cache[id(node)] = node, self._numbers.setdefault(key, len(self._numbers))
        return self._cache[id(node)][1]

    def _key(self, node: Node) -> Hashable:
        if isinstance(node, Scan):
            return "scan", node.relation.name, tuple((c.type, c.nullable) for c in node.columns)
        given = (column for child in node.inputs for column in child.output)
        positions: dict[int, Hashable] = {c.id: ("made", i) for i, c in enumerate(node.output)}
        positions |= {c.id: i for i, c in reversed(list(enumerate(given)))}
        return type(node).__name__, *(self._key_of_part(getattr(node, f.name), positions) for f in fields(node))  # type: ignore[arg-type]

    def _key_of_part(self, part: object, positions: Mapping[int, Hashable]) -> Hashable:
        match part:
            case tuple():  # NB: mostly of columns, of which an operator may have hundreds
                return tuple(
                    [
                        ("column", positions[each.id], each.type, each.nullable)
                        if isinstance(each, Column)
                        else self._key_of_part(each, positions)
                        for each in part
                    ]
                )
            case Column(id, _, held, nullable):
                return "column", positions[id], held, nullable
            case Node():
                return self.number(part)
            case Type():
                return part
            case Agg() | Call() | Cast() | Case():
                return type(part).__name__, *(
                    self._key_of_part(getattr(part, f.name), positions) for f in fields(part) if f.init
                )
        return repr(part)  # NB: not the part itself, as 0.0 = -0.0
