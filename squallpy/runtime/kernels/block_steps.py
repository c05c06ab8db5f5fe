"""Steps of compiled triggers over elements of the cofactor ring: values are lifted, blocks multiplied and added up.

A statement notes for each row where its factors are; then all of these rows are multiplied in one call, which asks for
the blocks of the next while it is at one.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numba import carray  # type: ignore[attr-defined]

from squallpy.base.rings import Cofactor
from squallpy.base.rings.cofactor import COUNT, HASH, ODD
from squallpy.runtime.kernels.c_functions import CFunction, c_function
from squallpy.runtime.kernels.cofactor_blocks import add_block, size_of_code, triangle, values_of_code
from squallpy.runtime.kernels.cofactor_lifting import lift_element
from squallpy.runtime.kernels.cofactor_products import add_products, ask_rows, settle, workspace
from squallpy.runtime.kernels.cofactor_tiles import TILE
from squallpy.runtime.kernels.intrinsics import as_float, as_word, load, pointer
from squallpy.runtime.kernels.kernel_compiler import GIVEN_VECTOR, VECTOR, Vector, inlined, kernel, making
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.trigger_steps import call

LIFT: Final = 20  # addresses in the table
MULTIPLY: Final = 21
MULTIPLY_EACH: Final = 22
SETTLE: Final = 23

# A product: its workspace, its factors and how many words they are, rows of where these are, the words of a row.
WORKSPACE: Final = 0
FACTORS: Final = 1
LENGTH: Final = 2
ROWS: Final = 3
WIDTH: Final = 4


@inlined
def add_lifted(where: int, code: int, first: int, values: int, times: int, steps: int) -> int:
    """Add the product of lifted doubles, so many times, to the element at an address; 0 if nothing is left of it.

    Args:
        code: The ring, whose first variable has the number `first`.
        values: The address of the doubles; room for an element is behind them.
    """
    return call(load(steps, LIFT), where, code, first, values, times, 0)


@c_function(6)
def _add_lifted(where: int, code: int, first: int, values: int, times: int, _e: int) -> int:
    """Lift to where the element is, if it is 0, else beside it."""
    if load(where, COUNT) | load(where, HASH) == 0:
        lift_element(where, code, first, values, times)
        return load(where, COUNT) | load(where, HASH)
    beside = values + 8 * size_of_code(code)
    lift_element(beside, code, first, values, times)
    return add_block(where, beside, code)


@inlined
def rows_of(product: int) -> int:
    """Return the address of the rows of a product."""
    return load(product, ROWS)


@inlined
def multiply_rows(product: int, rows: int, steps: int) -> None:
    """Add up the products of rows."""
    call(load(steps, MULTIPLY), product, rows, 0, 0, 0, 0)


@c_function(6)
def _multiply_rows(product: int, rows: int, _b: int, _c: int, _d: int, _e: int) -> int:
    """Add the product of each row to the workspace."""
    work, factors, places = load(product, WORKSPACE), _factors_of(product), _places_of(product, rows)
    ask_rows(work, places, min(TILE, rows))
    for row in range(0, rows, TILE):
        add_products(work, factors, 0, factors.shape[0], places, places, row, min(TILE, rows - row))
    return 0


@inlined
def multiply_each(product: int, rows: int, out: int, width: int, steps: int) -> None:
    """Store the product of each row, elements that are `width` words apart."""
    call(load(steps, MULTIPLY_EACH), product, rows, out, width, 0, 0)


@c_function(6)
def _multiply_each(product: int, rows: int, out: int, width: int, _d: int, _e: int) -> int:
    """Multiply row by row."""
    work, factors, places = load(product, WORKSPACE), _factors_of(product), _places_of(product, rows)
    for row in range(rows):
        add_products(work, factors, 0, factors.shape[0], places, places, row, 1)
        settle(work, out + 8 * row * width)
    return 0


@inlined
def settle_sum(product: int, out: int, steps: int) -> None:
    """Store the sum of products as the element at `out`; the next one begins at 0."""
    call(load(steps, SETTLE), product, out, 0, 0, 0, 0)


@c_function(6)
def _settle_sum(product: int, out: int, _b: int, _c: int, _d: int, _e: int) -> int:
    """Store the workspace's sum."""
    settle(load(product, WORKSPACE), out)
    return 0


@making
def _factors_of(product: int) -> Any:
    there: Any = pointer(load(product, FACTORS))
    return carray(there, (load(product, LENGTH),))


@making
def _places_of(product: int, rows: int) -> Any:
    """View the rows with a column for each."""
    there: Any = pointer(load(product, ROWS))
    return carray(there, (rows, load(product, WIDTH))).T


@inlined
def has_odd(block: int, size: int) -> bool:
    """True if a value that is not finite was added to an element of so many variables."""
    odd = 0
    for i in range(ODD, ODD + size):
        odd |= load(block, i)
    return odd != 0


@inlined
def cell_of(block: int, code: int, i: int, j: int) -> int:
    """Return the double of a sum, of the variable at place `i`, or of its product with that at place `j` if not below
    0."""
    size, n = size_of_code(code), values_of_code(code)
    place = i if j < 0 else size + triangle(max(i, j)) + min(i, j)
    there = block + 8 * (ODD + size + place)
    return as_word(as_float(load(there, 0)) + as_float(load(there, n))) if code & 1 == 1 else load(there, 0)


BLOCK_STEPS: tuple[CFunction, ...] = (_add_lifted, _multiply_rows, _multiply_each, _settle_sum)
"""Functions whose addresses are in the table."""


class Product:
    """The memory of a product that a statement adds up.

    Args:
        factors: Three words each, as of statements (`statement_assembly`).
        width: Words of a row.
        rows: The most rows at once.
    """

    def __init__(self, ring: Cofactor, factors: Sequence[int], width: int, rows: int) -> None:
        self._factors = np.array(factors, np.int64)
        self._rows = np.empty(rows * width, np.int64)
        self._workspace = make_workspace(ring.code, self._factors)
        parts = [self._workspace.ctypes.data, self._factors.ctypes.data, len(factors), self._rows.ctypes.data, width]
        self._words: Words = np.array(parts, np.int64)
        self.address = self._words.ctypes.data


@kernel(f"{VECTOR}(int64, {GIVEN_VECTOR})")
def make_workspace(code: int, factors: Vector) -> Words:
    """Make the workspace of a product of these factors, its sum 0."""
    return workspace(code, factors, 0, factors.shape[0])
