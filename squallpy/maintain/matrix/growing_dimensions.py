"""Dimensions that grow: rows and columns appended to the inputs of a program.

    x0 := G + eye(n)     n → n + 1:     every matrix gets a row and a column of zeros, as G did,
                                        and eye(n) changes by a one on the diagonal: an update like any other

Products, sums and transposes of matrices with zeros appended are what they were, with zeros appended. So growth is
cheap where nothing else has a dimension that grows: no inverse, no number that is made of one, no matrix to the right
or below of one in a stack, no function of entries that makes something of zeros. Constants of such dimensions become
inputs, which change when they grow.
"""

from collections.abc import Container
from dataclasses import replace

import numpy as np

from squallpy.maintain.matrix.anf import Anf
from squallpy.maintain.matrix.decompositions import Decomposition, MatrixFactor
from squallpy.maintain.matrix.dimensions import Arithmetic, Dimension, Number, Scalar, Size
from squallpy.maintain.matrix.entrywise_functions import FUNCTIONS
from squallpy.maintain.matrix.matrix_expressions import (
    SCALARS,
    Diagonal,
    Entrywise,
    Fill,
    Inverse,
    Matrix,
    Name,
    Scale,
    Stack,
    bottom_up,
    shape,
    walk,
)
from squallpy.maintain.matrix.matrix_program import Statement
from squallpy.maintain.matrix.meta_information import infer


def has_growing(size: Size, growing: Container[str]) -> bool:
    """True if a symbol of a dimension grows."""
    return any(symbol in growing for symbol, _ in size.symbols)


def grows_in_place(anf: Anf, growing: Container[str]) -> bool:
    """True if zeros appended to inputs append only zeros to a program, apart from its constants."""
    return all(_in_place(node, growing) for d in anf.definitions for node in walk(d.value))


def _in_place(node: Matrix, growing: Container[str]) -> bool:
    match node:
        case Inverse(of):
            return not has_growing(of.rows, growing)
        case Decomposition(factor, of):  # NB: rows of zeros change no R
            return not has_growing(of.cols, growing) and (factor is MatrixFactor.R or not has_growing(of.rows, growing))
        case Scale(by, _) | Fill(_, _, by) | Diagonal(_, by):
            return not _made_of(by, growing)
        case Entrywise(function, operands):
            return preserves_zero(function, operands)
        case Stack(parts):
            return not any(has_growing(part.cols, growing) for part in parts[:-1])
    return True


def preserves_zero(function: str, operands: tuple[Matrix | Scalar, ...]) -> bool:
    """True if a function of entries is zero where its matrices are, whatever the dimensions."""
    if any(isinstance(operand, SCALARS) and not isinstance(operand, Number) for operand in operands):
        return False
    with np.errstate(all="ignore"):
        value = FUNCTIONS[function].compute(*(o.value if isinstance(o, Number) else 0.0 for o in operands))
    return not np.isfinite(value) or value == 0


def _made_of(scalar: Scalar, growing: Container[str]) -> bool:
    match scalar:
        case Dimension(size):
            return has_growing(size, growing)
        case Arithmetic(_, left, right):
            return _made_of(left, growing) or _made_of(right, growing)
    return False


def name_constants(anf: Anf, growing: Container[str]) -> Anf:
    """Give names to the constants that change as dimensions grow, each its own text.

    They change one after the other, so that what holds of all together, as that ones(n, 1) * ones(1, n) is symmetric,
    does not hold in between: the properties of definitions are inferred again.
    """
    constants: dict[str, Matrix] = {}

    def named(node: Matrix) -> Matrix | None:
        if isinstance(node, Fill | Diagonal) and (has_growing(node.rows, growing) or has_growing(node.cols, growing)):
            constants[str(node)] = node
            return Name(str(node), *shape(node))
        return None

    definitions = tuple(Statement(d.name, bottom_up(d.value, named)) for d in anf.definitions)
    if not constants:
        return anf
    facts = dict(anf.facts) | {name: infer(value, {}) for name, value in constants.items()}
    for d in definitions:
        facts[d.name.name] = infer(d.value, facts)
    return replace(anf, program=replace(anf.program, statements=definitions), facts=facts, constants=constants)
