"""A matrix program: statements that name expressions over input matrices, in a semiring."""

from collections.abc import Iterator

from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.maintain.matrix.matrix_expressions import Matrix, Name
from squallpy.maintain.matrix.meta_information import NOTHING, Properties


@dataclass(frozen=True, slots=True)
class MatrixInput:
    """A matrix that changes, and what is declared of it."""

    name: Name
    properties: Properties = NOTHING

    def __str__(self) -> str:
        declared = "".join(f" {word}" for word in self.properties.words())
        return f"{self.name}({self.name.rows}, {self.name.cols}){declared}"


@dataclass(frozen=True, slots=True)
class Statement:
    """name := value"""

    name: Name
    value: Matrix

    def __str__(self) -> str:
        return f"{self.name} := {self.value}"


@dataclass(frozen=True, slots=True)
class MatrixProgram:
    """Statements in an order in which each name comes before its use; `outputs` are those that somebody reads."""

    inputs: tuple[MatrixInput, ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    ring: Semiring = ARITHMETIC

    def __str__(self) -> str:
        return "\n".join(map(str, self.statements))

    def input(self, name: str) -> MatrixInput | None:
        return next((i for i in self.inputs if i.name.name == name), None)

    def symbols(self) -> set[str]:
        """Collect the symbols among the dimensions."""
        return {symbol for name in self.names() for size in (name.rows, name.cols) for symbol, _ in size.symbols}

    def names(self) -> Iterator[Name]:
        yield from (i.name for i in self.inputs)
        yield from (s.name for s in self.statements)
