"""CREATE MATRIX and CREATE MATRIX PROGRAM → entries of the catalog, and the relations that these read as.

CREATE MATRIX A (n, n) FROM STREAM edges (src, dst, weight)   →   A(i BIGINT, j BIGINT, value DOUBLE)
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.semirings import SEMIRINGS
from squallpy.base.types import BOOLEAN, Type
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.matrices import Matrix, MatrixProgramDefinition, cells
from squallpy.catalog.relation import Relation
from squallpy.frontend.statements import CreateMatrix, CreateProgram
from squallpy.logical.bind.context import Context

Outputs = Callable[[MatrixProgramDefinition, Mapping[str, Matrix]], tuple[str, ...]]
"""Reader of the outputs of a program over matrices of the script; raises SquallError at its mistakes."""


def bind_matrix(catalog: Catalog, statement: CreateMatrix) -> Matrix:
    """Resolve the names of a matrix to how they were declared; SQ2001, SQ2003 and SQ2005 for what does not fit."""
    matrix, (source, *spans) = statement.matrix, statement.spans
    relation = catalog.entries.get(matrix.relation.lower())
    if not isinstance(relation, Relation):
        hint = nearest(matrix.relation, catalog.relations)
        raise SquallError("SQ2001", f'unknown stream or table "{matrix.relation}"', source, hint)
    if relation.stream != matrix.stream:
        kind = "STREAM" if relation.stream else "TABLE"
        raise SquallError("SQ2005", f'"{relation.name}" is a {kind}', source, f"write FROM {kind} {relation.name}")
    columns = []
    for position, (name, span) in enumerate(zip(matrix.columns, spans, strict=True)):
        field = relation.field(name)
        if field is None:
            hint = nearest(name, [f.name for f in relation.fields])
            raise SquallError("SQ2003", f'"{relation.name}" has no column "{name}"', span, hint)
        fits = field.type.is_integer if position < 2 else field.type.is_numeric or field.type == BOOLEAN
        if not fits:
            what, wanted = ("an index", "an INT or BIGINT") if position < 2 else ("an entry", "a number or a BOOLEAN")
            raise SquallError("SQ2005", f'{what} of a matrix is {wanted}, "{field.name}" is {field.type}', span)
        columns.append(field.name)
        if matrix.shares and field.type == BOOLEAN:
            raise SquallError("SQ2005", f'"{field.name}" is {field.type}, and has no shares of a sum', span)
    if matrix.shares and "SYMMETRIC" in matrix.known:
        raise SquallError("SQ2011", "shares of rows are not SYMMETRIC, as rows have sums of their own", matrix.span)
    if matrix.rows != matrix.cols and matrix.known:
        message = f"a matrix of {matrix.rows} × {matrix.cols} is not {matrix.known[0]}"
        raise SquallError("SQ2011", message, matrix.span, "it would be square")
    return replace(matrix, relation=relation.name, columns=tuple(columns))


def bind_program(catalog: Catalog, statement: CreateProgram, outputs: Outputs) -> MatrixProgramDefinition:
    """Resolve a program to what can be read of it; its mistakes are reported even if no query reads it."""
    program = statement.program
    if program.semiring not in SEMIRINGS:
        hint = nearest(program.semiring, SEMIRINGS)
        raise SquallError("SQ2012", f'unknown semiring "{program.semiring}"', statement.over, hint)
    if not catalog.matrices:
        hint = "write CREATE MATRIX A (n, n) FROM STREAM edges (i, j, value) before it"
        raise SquallError("SQ2012", f'"{program.name}" has no matrix to work on', program.span, hint)
    found = outputs(program, catalog.matrices)
    for name, matrix in catalog.matrices.items():
        if name in found:
            check_entries(catalog, program, matrix)
    return replace(program, outputs=found)


def check_entries(catalog: Catalog, program: MatrixProgramDefinition, matrix: Matrix) -> None:
    """Refuse a matrix whose entries are not of the program's semiring (SQ2005)."""
    type = entries(catalog, matrix)
    if matrix.shares and program.semiring != "arithmetic":
        message = f'"{matrix.name}" has SHARES, and the {program.semiring} semiring no fractions'
        raise SquallError("SQ2005", message, program.span, "leave SHARES away, or OVER")
    if type is not None and program.semiring == "counting" and not type.is_integer:
        message = f'the counting semiring has whole numbers, the entries of "{matrix.name}" are {type}'
        raise SquallError("SQ2005", message, program.span, "leave OVER counting away")
    if type == BOOLEAN and program.semiring != "boolean":
        message = f'the {program.semiring} semiring has numbers, the entries of "{matrix.name}" are {type}'
        raise SquallError("SQ2005", message, program.span, "write OVER boolean")


def entries(catalog: Catalog, matrix: Matrix) -> Type | None:
    """Return the type of what rows add to a matrix, None where they add 1."""
    if matrix.outer or len(matrix.columns) < 3:
        return None
    field = catalog.relations[matrix.relation].field(matrix.columns[2])
    assert field
    return field.type


def matrix_relation(catalog: Catalog, matrix: Matrix) -> Relation:
    """Return the relation of a matrix by its own name: over arithmetic, or of its truth values."""
    return cells(matrix.name, "boolean" if entries(catalog, matrix) == BOOLEAN else "arithmetic")


def output(ctx: Context, program: exp.Expr, output: exp.Expr) -> Relation:
    """Return the relation of a program's output, as p16.D; SQ2001 where one of them is unknown."""
    programs = {name.lower(): entry for name, entry in ctx.catalog.programs.items()}
    found = programs.get(program.name.lower())
    if found is None:
        hint = nearest(program.name, ctx.catalog.programs)
        raise ctx.error("SQ2001", f'unknown matrix program "{program.name}"', program, hint)
    for name in found.outputs:
        if name.lower() == output.name.lower():
            return cells(f"{found.name}.{name}", found.semiring)
    message = f'the matrix program "{found.name}" has no output "{output.name}"'
    raise ctx.error("SQ2001", message, output, nearest(output.name, found.outputs))
