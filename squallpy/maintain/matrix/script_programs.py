"""The matrix programs of a script: read where they stand, and cut down to what a query asks of them.

Programs().outputs(p16, {"A": A})     →   ("B", "C", "D", "A")
asked(program, ["C"])                 →   B := A * A; C := B * B
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, SEMIRINGS, Semiring
from squallpy.base.types import BOOLEAN as TRUTH
from squallpy.catalog import matrices as catalog
from squallpy.catalog.relation import Relation
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name, names, shape, walk
from squallpy.maintain.matrix.matrix_program import MatrixInput, MatrixProgram
from squallpy.maintain.matrix.meta_information import NOTHING, Properties
from squallpy.maintain.matrix.parser import read_program


@dataclass
class Programs:
    """Parsed programs of a script, by name, each over the matrices declared before it."""

    programs: dict[str, MatrixProgram] = field(default_factory=dict)

    def outputs(
        self, declared: catalog.MatrixProgramDefinition, matrices: Mapping[str, catalog.Matrix]
    ) -> tuple[str, ...]:
        """Read a program: the names of its statements, and of the matrices that it reads."""
        body, ring = declared.body, SEMIRINGS[declared.semiring]
        inputs = [input_of(matrix) for matrix in matrices.values()]
        program = prune_program(read_program("", inputs, ring, body.script, body.start, body.end))
        lower = [name.lower() for name in program.outputs]
        for name in program.outputs:
            if lower.count(name.lower()) > 1:
                message = f'"{name}" is named twice in "{declared.name}": SQL does not tell upper case from lower'
                raise SquallError("SQ2007", message, declared.span)
        self.programs[declared.name] = program
        return (*program.outputs, *(i.name.name for i in program.inputs))


def input_of(matrix: catalog.Matrix) -> MatrixInput:
    """Convert a matrix of a script to an input of a program."""
    return MatrixInput(Name(matrix.name, Size.of(matrix.rows), Size.of(matrix.cols)), declared_properties(matrix))


def declared_properties(matrix: catalog.Matrix) -> Properties:
    """Return the properties that a declaration states."""
    if "DIAGONAL" in matrix.known:
        return Properties(True, True, True)
    said = {word.lower(): word in matrix.known for word in ("SYMMETRIC", "LOWER", "UPPER")}
    return replace(NOTHING, **said)  # type: ignore[arg-type]


def program_of_matrix(matrix: catalog.Matrix, relation: Relation) -> MatrixProgram:
    """Build the program of a matrix that is read by itself, whose cells are the rows of a relation."""
    ring: Semiring = BOOLEAN if relation.fields[-1].type == TRUTH else ARITHMETIC
    return MatrixProgram((input_of(matrix),), (), (), ring)


def prune_program(program: MatrixProgram, outputs: Iterable[str] | None = None) -> MatrixProgram:
    """Prune a program to some outputs (None: all), the statements that these need, and inputs.

    Inputs stay that are read, that are outputs, or that alone say how large a dimension is.
    """
    wanted = set(program.outputs if outputs is None else outputs)
    needed, kept = set(wanted), []
    for statement in reversed(program.statements):
        if statement.name.name in needed:
            kept.append(statement)
            needed |= names(statement.value)
    inputs = [i for i in program.inputs if i.name.name in needed]
    used = {symbol for statement in kept for node in walk(statement.value) for symbol in _symbols(shape(node))}
    for i in program.inputs:
        known = {symbol for other in inputs for symbol in _symbols(shape(other.name))}
        if (used - known) & _symbols(shape(i.name)):
            inputs.append(i)
    asked = tuple(name for name in program.outputs if name in wanted)
    return MatrixProgram(tuple(inputs), tuple(reversed(kept)), asked, program.ring)


def _symbols(sizes: Iterable[Size]) -> set[str]:
    return {symbol for size in sizes for symbol, _ in size.symbols}
