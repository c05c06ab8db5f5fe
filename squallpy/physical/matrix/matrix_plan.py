"""The matrices of a query as the first stage of its plan: the programs that are kept fresh, and the cells read of them.

SELECT j, value FROM p16.D WHERE i IN (3, 7)   →   OutputReader(p16.D, rows 3 and 7)
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from squallpy.base.records import dataclass
from squallpy.catalog.matrices import Matrix
from squallpy.catalog.relation import Relation

if TYPE_CHECKING:  # a worker that runs no matrices needs no compiler of them
    from squallpy.maintain.matrix.compile_triggers import CompiledMatrices
    from squallpy.maintain.matrix.matrix_program import MatrixProgram

Interval = tuple[int | None, int | None]  # from, to; both inclusive, None: no end
Some = tuple[Interval, ...]  # the indices in any of these
ALL: Some = ((None, None),)


@dataclass(frozen=True, slots=True)
class OutputReader:
    """The cells of an output that a query reads, as rows of a relation."""

    relation: Relation
    output: str
    rows: Some = ALL
    cols: Some = ALL

    def __str__(self) -> str:
        parts = [
            f", {name} {_intervals_text(some)}"
            for name, some in (("rows", self.rows), ("columns", self.cols))
            if some != ALL
        ]
        return self.relation.name + "".join(parts)


@dataclass(frozen=True, slots=True)
class MatrixProgramPlan:
    """A compiled program, as far as the query needs it; a matrix that is read by itself is one, too."""

    name: str
    program: "MatrixProgram"
    compiled: "CompiledMatrices"
    readings: tuple[OutputReader, ...]


@dataclass(frozen=True, slots=True)
class MatrixPlan:
    """The matrix programs of a query, as the first stage of its plan.

    Args:
        matrices: The declared matrices under the programs, by name.
        by_rows: The rows under matrices are stored, where a semiring cannot subtract; cells that lose some are computed
            from those that are left.
        parts: The number of partitions that have the views in blocks; 0 if the driver has them.
        keyed: Relations under matrices whose rows replace each other by key.
    """

    programs: tuple[MatrixProgramPlan, ...]
    matrices: Mapping[str, Matrix] = field(hash=False)
    by_rows: bool = False
    parts: int = 0
    keyed: tuple[Relation, ...] = ()

    @property
    def readings(self) -> tuple[OutputReader, ...]:
        return tuple(reading for kept in self.programs for reading in kept.readings)

    @property
    def relations(self) -> set[str]:
        """The streams and tables whose rows are cells."""
        return {matrix.relation for matrix in self.matrices.values()}


def under_matrices(relation: str) -> str:
    """Name a relation in statistics as read for matrices; the query may also read it for itself."""
    return f"{relation} under matrices"


def _intervals_text(some: Some) -> str:
    texts = []
    for low, high in some:
        if low == high and low is not None:
            texts.append(str(low))
        else:
            texts.append(f"{'' if low is None else low}…{'' if high is None else high}")
    return " ".join(texts) or "none"
