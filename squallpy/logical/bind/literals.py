"""Literals that are read as they are written: arguments of table functions, and texts behind each other."""

from typing import TYPE_CHECKING

from sqlglot import exp

from squallpy.base.types import VARCHAR
from squallpy.logical.expressions import Literal

if TYPE_CHECKING:
    from squallpy.logical.bind.expressions import Scalars

_REALS = (exp.DataType.Type.DOUBLE, exp.DataType.Type.FLOAT)
_INTEGERS = (exp.DataType.Type.BIGINT, exp.DataType.Type.SMALLINT, exp.DataType.Type.TINYINT)


def read_number(node: exp.Expr | None) -> float | None:
    """Read a number that is 0 or more, None for anything else; a suffix makes it a cast: 0.9D, CAST(0.9 AS DOUBLE)"""
    if isinstance(node, exp.Cast) and not node.to.expressions:
        digits = node.this.name.isdigit()
        node = node.this if node.to.this in _REALS or (node.to.this in _INTEGERS and digits) else None
    return float(node.name) if isinstance(node, exp.Literal) and node.is_number else None


def read_text(node: exp.Expr | None) -> str:
    """Read a string; '' for anything else."""
    return node.name if isinstance(node, exp.Literal) and node.is_string else ""


def bind_adjacent_texts(_: "Scalars", node: exp.Concat) -> Literal:
    """Bind 'a' 'b', which is one text."""
    return Literal("".join(part.name for part in node.expressions), VARCHAR)
