"""Matrices whose cells are sums of the rows of a relation, and programs over them, as a script declares them.

CREATE MATRIX A (n, n) FROM STREAM edges (src, dst, weight)
CREATE MATRIX P (n, n) SHARES FROM STREAM edges (src, dst, weight)      each row divided by its sum
CREATE MATRIX PROGRAM p16 AS $$ B := A * A; C := B * B $$      read as the relations p16.B, p16.C, p16.A
"""

from typing import Any

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, BOOLEAN, DOUBLE, Type
from squallpy.catalog.relation import COMPUTED, MULT, Field, Relation

CELL = ("i", "j", "value")
TYPES: dict[str, Type] = {"boolean": BOOLEAN, "counting": BIGINT}
"""Types of the entries of a matrix by its semiring; DOUBLE for all others."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of zeros to which each row of `relation` adds: `columns` name the row, the column and the value, else 1.

    A dimension is a number, or a symbol that the data bind. With `outer`, names of columns, or "" for
    1, a row adds the products of all on the left and all on the right. With `shares`, a cell is the sum of its rows
    divided by the sum of its row of the matrix if that is more than 0, else zero.
    """

    name: str
    rows: int | str
    cols: int | str
    relation: str
    stream: bool
    columns: tuple[str, ...]
    known: tuple[str, ...] = ()
    span: Span | None = None
    outer: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    shares: bool = False

    def __str__(self) -> str:
        words = "".join(f" {word}" for word in (*self.known, *(["SHARES"] if self.shares else [])))
        read = ", ".join(self.columns)
        if self.outer:
            read = " * ".join(f"[{', '.join(name or '1' for name in names)}]" for names in self.outer)
        source = f"{'STREAM' if self.stream else 'TABLE'} {self.relation} ({read})"
        return f"{self.name} ({self.rows}, {self.cols}){words} FROM {source}"


@dataclass(frozen=True, slots=True)
class MatrixProgramDefinition:
    """Statements over matrices in a semiring. `body` is the frontend's parse, opaque here; `outputs` are the
    names that can be read: those of its statements, and of the matrices that they read."""

    name: str
    semiring: str
    body: Any
    outputs: tuple[str, ...] = ()
    span: Span | None = None


def cells(name: str, semiring: str) -> Relation:
    """Make the relation that a matrix reads as: a change stream of its cells that are not zero."""
    value = Field("value", TYPES.get(semiring, DOUBLE), False)
    fields = (Field("i", BIGINT, False), Field("j", BIGINT, False), value)
    return Relation(name, fields, True, COMPUTED, {"op": MULT}, CELL[:2])
