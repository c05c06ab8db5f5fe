"""Derivation: how each name of a program changes when one input does (Fig. 5.8).

    x0 := G + eye(n)     →     δ0 := δG
    x1 := G * x0               δ1 := δG * x0 + G * δ0 + δG * δ0

Definitions are in ANF, so that every rule meets leaves; what an input does not reach has no delta. In an idempotent
semiring the input changes before anything is read (`physical/passes`), so that a product with it needs no third term:
(G + δG)·(x + δx) = G·x + δG·x + (G + δG)·δx.
"""

from collections.abc import Mapping
from itertools import product as every

from squallpy.base.records import dataclass
from squallpy.base.semirings import Semiring
from squallpy.maintain.matrix.anf import Anf
from squallpy.maintain.matrix.decompositions import Decomposition
from squallpy.maintain.matrix.dimensions import Number
from squallpy.maintain.matrix.matrix_expressions import (
    Entrywise,
    Inverse,
    Iterate,
    MainDiagonal,
    Matrix,
    Name,
    Product,
    RowDot,
    Scale,
    Stack,
    Sum,
    Transpose,
    add,
    children,
    names,
    product,
    shape,
    stack,
    substitute,
    transpose,
    walk,
    with_children,
    zeros,
)
from squallpy.maintain.matrix.matrix_program import Statement
from squallpy.maintain.matrix.simplify import simplify

Deltas = Mapping[str, Name]  # a changed name → its delta variable: the map M of §5.3.5


@dataclass(frozen=True, slots=True)
class DerivedDeltas:
    """The delta of each definition that changes, in order, and the map from names to delta variables."""

    statements: tuple[Statement, ...]
    deltas: Deltas


def derive(anf: Anf, changed: str) -> DerivedDeltas:
    """Derive the deltas of a program for a change of one of its inputs."""
    deltas = {changed: delta_name(anf.source(changed))}
    statements = []
    for definition in anf.definitions:
        change = delta(definition.value, deltas, anf.program.ring, changed)
        if change is not None:
            name = delta_name(definition.name)
            statements.append(Statement(name, simplify(change, anf.facts, anf.program.ring)))
            deltas[definition.name.name] = name
    return DerivedDeltas(tuple(statements), deltas)


def delta_name(name: Name) -> Name:
    """Name the delta of a matrix: x3 → δ3, B → δB."""
    return Name(f"δ{label(name.name)}", *shape(name))


def label(name: str) -> str:
    """Return what stands behind δ, U and V for a name."""
    return name[1:] if name[0] == "x" and name[1:].isdigit() else name


def delta(matrix: Matrix, deltas: Deltas, ring: Semiring, changed: str) -> Matrix | None:
    """Derive Δ of an operation on leaves as an input changes; None if it does not change."""

    match matrix:
        case Name(name):  # DELTA-VAR-EQ, DELTA-VAR-NEQ
            return deltas.get(name)
        case Transpose(of):
            change = delta(of, deltas, ring, changed)
            return change and transpose(change)
        case Scale(by, of):
            change = delta(of, deltas, ring, changed)
            return change and Scale(by, change)
        case Sum(terms):
            changes = [change for term in terms if (change := delta(term, deltas, ring, changed))]
            return add(*changes) if changes else None
        case Product((left, right)):
            old = not (ring.idempotent and changed in names(left) | names(right))
            return _product(left, right, delta(left, deltas, ring, changed), delta(right, deltas, ring, changed), old)
        case Inverse(of):  # (m + Δm)⁻¹ - m⁻¹, which Woodbury's formula makes cheap
            change = delta(of, deltas, ring, changed)
            return change and add(Inverse(add(of, change)), Scale(Number(-1), matrix))
        case Entrywise():
            return _entrywise(matrix, [delta(operand, deltas, ring, changed) for operand in children(matrix)], ring)
        case Iterate() | Decomposition():  # NB: that of an iteration until it converges nobody knows beforehand
            after = replace_changed(matrix, deltas)
            if after is matrix:
                return None
            # NB: where there is no subtraction the sum is idempotent, and what was is a part of what is
            return add(after, Scale(Number(-1), matrix)) if ring.negates else after
        case RowDot(left, right):
            return _dot(left, right, *(delta(each, deltas, ring, changed) for each in (left, right)))
        case MainDiagonal(of):
            change = delta(of, deltas, ring, changed)
            return change and MainDiagonal(change)
        case Stack(parts):
            found = [delta(part, deltas, ring, changed) for part in parts]
            filled = (change or zeros(part.rows, part.cols) for change, part in zip(found, parts, strict=True))
            return stack(*filled) if any(found) else None
    return None  # DELTA-VECT, DELTA-DIAG


def replace_changed(matrix: Matrix, changes: Mapping[str, Matrix]) -> Matrix:
    """Replace the free names that change by what they are afterwards."""
    for name in sorted(names(matrix) & changes.keys()):
        source = next(node for node in walk(matrix) if isinstance(node, Name) and node.name == name)
        matrix = substitute(matrix, name, add(source, changes[name]))
    return matrix


def _entrywise(matrix: Entrywise, changes: list[Matrix | None], ring: Semiring) -> Matrix | None:
    """Derive f(a + Δa, b + Δb) - f(a, b).

    Where there is no subtraction f multiplies, and has a delta as products of matrices have.
    """
    if not any(changes):
        return None
    operands = children(matrix)
    if ring.negates:
        after = [add(operand, change) if change else operand for operand, change in zip(operands, changes, strict=True)]
        return add(with_children(matrix, tuple(after)), Scale(Number(-1), matrix))
    terms = [
        with_children(matrix, chosen)
        for chosen in every(*((old, new) if new else (old,) for old, new in zip(operands, changes, strict=True)))
        if chosen != operands
    ]
    return add(*terms)


def _dot(left: Matrix, right: Matrix, left_change: Matrix | None, right_change: Matrix | None) -> Matrix | None:
    """Derive Δa ∙ b + a ∙ Δb + Δa ∙ Δb, row by row."""
    pairs = ((left_change, right), (left, right_change), (left_change, right_change))
    terms = [RowDot(one, other) for one, other in pairs if one and other]
    return add(*terms) if terms else None


def _product(
    left: Matrix, right: Matrix, left_change: Matrix | None, right_change: Matrix | None, old: bool
) -> Matrix | None:
    """Derive Δa·b + a·Δb + Δa·Δb, of a and b as they were.

    If one is the input and has changed, the last term is in the others.
    """
    terms = []
    if left_change:
        terms.append(product(left_change, right))
    if right_change:
        terms.append(product(left, right_change))
    if left_change and right_change and old:
        terms.append(product(left_change, right_change))
    return add(*terms) if terms else None
