"""Deltas of functions of entries, and of iterations until convergence: what has changed is computed again.

    B := abs(A)     A += u * v     →     by rows:     UB := u
                                                      VB := abs(u' * A + v) - u' * B
                                         as a whole:  UB := eye(n)
                                                      VB := abs(A + u * v) - B

By rows it is done where all that changes is in the rows that the input's own u selects, whose columns are those of a
unit matrix then (u' * u = eye(k)). The rank of such a delta is the number of changed rows, whatever the function.
"""

from collections.abc import Mapping

from squallpy.maintain.matrix.derivation import Deltas, replace_changed
from squallpy.maintain.matrix.dimensions import Number
from squallpy.maintain.matrix.expression_cost import Guess
from squallpy.maintain.matrix.factored_deltas import Factors
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Fill,
    Matrix,
    Name,
    Scale,
    add,
    bottom_up,
    children,
    names,
    product,
    transpose,
    with_children,
)
from squallpy.maintain.matrix.matrix_program import Statement


def change_of_rows(definition: Statement, deltas: Deltas, blocks: Mapping[str, Factors], u: Name) -> Factors | None:
    """Factor the change of those rows of a definition that u selects; None if others may change, too."""
    changes = dict[str, Factors]()
    for operand in children(definition.value):
        if isinstance(operand, Name) and operand.name in deltas:
            changes[operand.name] = blocks[deltas[operand.name].name]
        elif names(operand) & deltas.keys():
            return None
    if any(left != u for change in changes.values() for left, _ in change.blocks):
        return None
    operands = []
    for operand in children(definition.value):
        change = changes[operand.name].blocks if isinstance(operand, Name) and operand.name in changes else ()
        operands.append(add(_select_rows(operand, u), *(right for _, right in change)))
    after = with_children(definition.value, tuple(operands))
    before = product(transpose(u), definition.name)
    return Factors(((u, add(after, Scale(Number(-1), before))),))


def _select_rows(operand: Matrix, u: Name) -> Matrix:
    """Select rows of an operand: all rows of a constant are alike."""
    if isinstance(operand, Fill):
        return Fill(u.cols, operand.cols, operand.value)
    return product(transpose(u), operand)


def change_of_all(
    definition: Statement, deltas: Deltas, factors: Mapping[str, Factors], guess: Guess, negates: bool
) -> Factors:
    """Factor the change of all of a definition, what it is afterwards less what it was.

    Args:
        negates: There is a subtraction; else the sum is idempotent, and what it was is a part of what it is.
    """
    changes = {name: product(factors[change.name].u, factors[change.name].v) for name, change in deltas.items()}
    after = replace_changed(definition.value, changes)
    return whole_delta(add(after, Scale(Number(-1), definition.name)) if negates else after, guess)


def change_of_products(delta: Matrix, factors: Mapping[str, Factors], guess: Guess) -> Factors:
    """Factor the change of a product of entries, as it is derived without a subtraction."""

    def filled(node: Matrix) -> Matrix | None:
        known = factors.get(node.name) if isinstance(node, Name) else None
        return product(known.u, known.v) if known else None

    return whole_delta(bottom_up(delta, filled), guess)


def whole_delta(change: Matrix, guess: Guess) -> Factors:
    """Factor a delta as itself, beside a unit matrix on its shorter side."""
    if guess(change.cols) < guess(change.rows):
        return Factors(((change, Diagonal(change.cols)),))
    return Factors(((Diagonal(change.rows), change),))
