"""Texts that identify the query of a checkpoint, independent of the names of columns, views and passes."""

from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from squallpy.base.errors import Span
from squallpy.logical.apply import Domain
from squallpy.logical.expressions import Column
from squallpy.logical.nodes import Node, NodeByPosition, Scan, nodes


def identity_text(plan: Node) -> str:
    """Write down a bound plan, an operator a line, with columns numbered as they first occur; columns of relations
    that nothing reads are left out.

    SELECT a FROM r t WHERE a > 1   →   Filter(@0, Call(>, (#0 INT?, Literal(1, INT)), …))
                                        Project(@1, ((#1 INT?, #0 INT?)))
                                        @0 = r(a = #0 INT?)
    """
    written = _Identity()
    operators = list(nodes(plan))
    scans = [node for node in operators if isinstance(node, Scan)]
    lines = [written.operator(node) for node in operators]
    return "\n".join((*filter(None, lines), written.text(plan.output), *map(written.scan, scans)))


class _Identity:
    """The numbers of columns, by id, and of operators, by their own `id()`."""

    def __init__(self) -> None:
        self._columns, self._nodes = dict[int, int](), dict[int, int]()

    def operator(self, node: Node) -> str:
        """Write an operator whose inputs have been written; nothing for a scan, of which others say what is read."""
        match node:
            case Scan():
                text = ""
            case Domain():  # the outer columns of a correlated subquery
                text = f"Domain{self.text(node.output)}"
            case _:
                text = self._fields(node)
        if isinstance(node, NodeByPosition):
            text += "".join(self.text(child.output) for child in node.inputs)
        self._nodes[id(node)] = len(self._nodes)
        return text

    def scan(self, node: Scan) -> str:
        """Write which columns of its relation a scan reads."""
        read = (f"{c.name} = {self.text(c)}" for c in node.columns if c.id in self._columns)
        return f"@{self._nodes[id(node)]} = {node.relation.name}({', '.join(read)})"

    def _fields(self, value: Any) -> str:
        parts = (getattr(value, each.name) for each in fields(value) if each.compare)
        return f"{type(value).__name__}({', '.join(self.text(part) for part in parts if not isinstance(part, Span))})"

    def text(self, value: Any) -> str:
        """Write columns, expressions and what operators have besides."""
        match value:
            case Node():
                return f"@{self._nodes[id(value)]}"
            case Column():
                number = self._columns.setdefault(value.id, len(self._columns))
                return f"#{number} {value.type}{'?' if value.nullable else ''}"
            case tuple():
                return f"({', '.join(map(self.text, value))})"
            case Enum():
                return value.name
        return self._fields(value) if is_dataclass(value) else repr(value)
