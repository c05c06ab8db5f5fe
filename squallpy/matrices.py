"""Matrix programs in Python: written with symbolic matrices, maintained as their inputs change.

    @program
    def ols(X, Y):
        return {"beta": inv(X.T @ X) @ (X.T @ Y)}

    model = ols.start(X=observations, Y=answers)      evaluated once
    model.row("X", 7, difference)                     X[7] += difference, at the cost of products by vectors
    model.append(X=new_rows, Y=new_answers)           more observations
    model["beta"]                                     always what `ols` would give for X and Y as they are now

Over another semiring: `@program(over=BOOLEAN)`. `print(ols.explain(X=(n, m), …))` shows the phases of Fig. 5.12.
"""

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.recursion import run_deep
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.maintain.matrix.compile_triggers import AUTO, CompiledMatrices, Options, compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.explain_text import phases_text, report_text
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.meta_information import NOTHING, Properties
from squallpy.maintain.matrix.symbolic_matrices import (
    Symbolic,
    cholesky,
    diag,
    equal,
    exp,
    eye,
    fill,
    hstack,
    inv,
    iterate,
    log,
    maximum,
    minimum,
    ones,
    qr,
    sqrt,
    trace,
    vstack,
    zeros,
)
from squallpy.runtime.matrix.algebra import pad, unit_columns
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.maintained_program import MaintainedProgram, UpdateCounts
from squallpy.runtime.matrix.sparse_view import is_sparse

Array = npt.NDArray[Any]
_KINDS = ("rows", "columns")
Extent = int | str
Inputs = Mapping[str, tuple[Extent, Extent]]


@dataclass(frozen=True, slots=True)
class MatrixProgram:
    """A function of matrices that can be maintained."""

    function: Callable[..., Any]
    over: Semiring = ARITHMETIC
    model: str = AUTO
    strategy: str = AUTO
    known: Mapping[str, Properties] = field(default_factory=dict)
    """Properties of inputs, by their names: Properties(symmetric=True), …"""
    shapes: Inputs = field(default_factory=dict)
    """Rows and columns of each input, numbers or symbols; without any, dimensions equal at the start are the same.

    {"X": ("m", "n"), "Y": ("m", 1)}
    """

    def compile(self, shapes: Inputs, sizes: Mapping[str, int]) -> CompiledMatrices:
        """Compile the triggers for inputs of these shapes, numbers or symbols; `sizes` of symbols guide the choice
        of plans."""
        inputs = [
            MatrixInput(Name(name, Size.of(rows), Size.of(cols)), self.known.get(name, NOTHING))
            for name, (rows, cols) in shapes.items()
        ]
        traced = trace(self.function, inputs, self.over)
        symbols = sorted(traced.symbols())
        options = Options(self.model, self.strategy)
        return run_deep(lambda: compile_program(traced, list(shapes), sizes, options, symbols))

    def explain(self, sizes: Mapping[str, int] | None = None, **shapes: tuple[Extent, Extent]) -> str:
        """Show all phases of the program for inputs of these shapes, and the alternatives that were weighed."""
        compiled = self.compile(shapes, sizes or {})
        return f"{phases_text(compiled.maintained)}\n-- costs\n{report_text(compiled, sizes or {})}"

    def start(self, **inputs: npt.ArrayLike) -> "MaintainedOutputs":
        """Evaluate the program once. The arrays are copied; SQ2011 if their shapes are not those of the program."""
        arrays = {name: np.atleast_2d(np.asarray(values, self.over.dtype)) for name, values in inputs.items()}
        shapes = self.shapes or _choose_symbols(arrays)
        compiled = replace(self, known=self._collect_properties(arrays)).compile(shapes, _extents(shapes, arrays))
        return MaintainedOutputs(compiled, MaintainedProgram(compiled.maintained, arrays, self.strategy))

    def _collect_properties(self, arrays: Mapping[str, Array]) -> dict[str, Properties]:
        """Collect the known properties of inputs, and their density where it matters."""
        seen = dict(self.known)
        for name, array in arrays.items():
            if is_sparse(array, self.over):
                density = np.count_nonzero(array != self.over.zero) / array.size
                seen[name] = replace(self.known.get(name, NOTHING), density=density)
        return seen


def _choose_symbols(arrays: Mapping[str, Array]) -> Inputs:
    """Choose symbols for dimensions: equal numbers share one, and 1 stays a number."""
    extents = sorted({extent for array in arrays.values() for extent in array.shape if extent > 1})

    def symbol(extent: int) -> Extent:
        return f"n{extents.index(extent)}" if extent > 1 else extent

    return {name: (symbol(array.shape[0]), symbol(array.shape[1])) for name, array in arrays.items()}


def _extents(shapes: Inputs, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Find the sizes of symbols from arrays."""
    pairs = (pair for name, array in arrays.items() for pair in zip(shapes.get(name, ()), array.shape, strict=False))
    return {symbol: extent for symbol, extent in pairs if isinstance(symbol, str)}


@overload
def program(function: Callable[..., Any]) -> MatrixProgram: ...
@overload
def program(**options: Any) -> Callable[[Callable[..., Any]], MatrixProgram]: ...
def program(
    function: Callable[..., Any] | None = None, **options: Any
) -> MatrixProgram | Callable[[Callable[..., Any]], MatrixProgram]:
    """Decorate a function that, called with symbolic matrices, returns what is to be computed.

    Options are `over`, `model`, `strategy`, `known` and `shapes` of MatrixProgram.
    """

    def made(function: Callable[..., Any]) -> MatrixProgram:
        return MatrixProgram(function, **options)

    return made if function is None else made(function)


@dataclass(frozen=True, slots=True)
class MaintainedOutputs:
    """A program that has been started: its outputs are always fresh."""

    compiled: CompiledMatrices
    live: MaintainedProgram

    def __getitem__(self, name: str) -> Array:
        """Return the values of an output or an input."""
        return self.live.read(name).copy()

    @property
    def value(self) -> Array:
        """The output of a program that has one."""
        (name,) = self.compiled.maintained.program.outputs
        return self[name]

    @property
    def counts(self) -> UpdateCounts:
        """Number of updates, by the way in which they were applied."""
        return self.live.counts

    def update(self, name: str, u: npt.ArrayLike, v: npt.ArrayLike) -> None:
        """Apply input += u·v: u (n, k), v (k, m); for one column and one row, vectors will do."""
        left, right = np.asarray(u), np.asarray(v)
        left = left[:, None] if left.ndim == 1 else left
        self.live.update(name, left, right[None, :] if right.ndim == 1 else right)

    def row(self, name: str, at: int, change: npt.ArrayLike) -> None:
        """Apply input[at, :] += change."""
        self._at(name, at, 0)
        self.live.update(name, self._unit(name, at, 0), np.atleast_2d(np.asarray(change)))

    def column(self, name: str, at: int, change: npt.ArrayLike) -> None:
        """Apply input[:, at] += change."""
        self._at(name, at, 1)
        self.live.update(name, np.atleast_2d(np.asarray(change)).T, self._unit(name, at, 1).T)

    def cells(self, name: str, rows: npt.ArrayLike, cols: npt.ArrayLike, values: npt.ArrayLike) -> None:
        """Apply input[rows[l], cols[l]] += values[l], all of them as one update of the lowest rank."""
        i, j = np.asarray(rows, np.int64), np.asarray(cols, np.int64)
        for axis, places in enumerate((i, j)):
            for at in places[(places < 0) | (places >= self.live.views.shape(name)[axis])][:1]:
                self._at(name, int(at), axis)
        ring = self.compiled.maintained.program.ring
        self.live.update(name, *self.live.factors(name, Cells(i, j, np.asarray(values, ring.dtype))))

    def append(self, **rows: npt.ArrayLike) -> None:
        """Append rows to inputs; those that share the dimension grow together."""
        self._append(0, rows)

    def append_columns(self, **columns: npt.ArrayLike) -> None:
        """Append columns to inputs: arrays of (rows, columns)."""
        self._append(1, columns)

    def _append(self, axis: int, parts: Mapping[str, npt.ArrayLike]) -> None:
        ring = self.compiled.maintained.program.ring
        arrays = {name: np.atleast_2d(np.asarray(values, ring.dtype)) for name, values in parts.items()}
        starts = {name: self._extent(name, axis).at(self.live.views.sizes) for name in arrays}
        sizes = self._grow_dimensions(axis, arrays)
        changes = {}
        for name, array in arrays.items():
            count, across = array.shape[axis], self._extent(name, 1 - axis)
            extent = across.at(sizes)
            if array.shape[1 - axis] not in (across.at(self.live.views.sizes), extent):
                message = f"what is appended to {name} has {array.shape[1 - axis]} {_KINDS[1 - axis]}"
                raise SquallError("SQ2011", message, hint=f"{name} has {extent}")
            unit = unit_columns(starts[name] + count, np.arange(starts[name], starts[name] + count), ring)
            # NB: a square matrix has grown on both sides: what is appended says nothing of its own corner
            whole = pad(array, (count, extent) if axis == 0 else (extent, count), ring)
            changes[name] = (unit, self.live.checked(name, whole)) if axis == 0 else (whole, unit.T)
        self.live.grow(sizes)
        for name, (u, v) in changes.items():
            self.live.update(name, u, v)

    def _grow_dimensions(self, axis: int, arrays: Mapping[str, Array]) -> dict[str, int]:
        """Compute the dimensions of the program after arrays are appended."""
        sizes: dict[str, int] = {}
        for name, array in arrays.items():
            extent = self._extent(name, axis)
            if len(extent.symbols) != 1:
                raise SquallError("SQ2012", f"{name} is not a matrix to which {_KINDS[axis]} can be appended")
            symbol, more = extent.symbols[0][0], array.shape[axis]
            others = sizes.setdefault(symbol, self.live.views.sizes[symbol] + more) - self.live.views.sizes[symbol]
            if others != more:
                message = f"{more} {_KINDS[axis]} are appended to {name}, where another matrix gets {others}"
                raise SquallError("SQ2011", message, hint=f"both have {symbol} of them")
        return {**self.live.views.sizes, **sizes}

    def _extent(self, name: str, axis: int) -> Size:
        """Return the rows or the columns of an input."""
        source = self.compiled.maintained.program.input(name)
        if source is None:
            raise SquallError("SQ2012", f"{name} is no input of the program")
        return (source.name.rows, source.name.cols)[axis]

    def _unit(self, name: str, at: int, axis: int) -> Array:
        ring, extent = self.compiled.maintained.program.ring, self.live.views.shape(name)[axis]
        return unit_columns(extent, np.array([at]), ring)

    def _at(self, name: str, at: int, axis: int) -> None:
        extent = self.live.views.shape(name)[axis]
        if not 0 <= at < extent:
            kind = ("row", "column")[axis]
            raise SquallError("SQ5010", f"{kind} {at} is outside of {name}", hint=f"it has {extent}, from 0 on")


__all__ = [
    "ARITHMETIC",
    "BOOLEAN",
    "COUNTING",
    "MAX_PLUS",
    "MIN_PLUS",
    "MaintainedOutputs",
    "MatrixProgram",
    "Properties",
    "Semiring",
    "Symbolic",
    "cholesky",
    "diag",
    "equal",
    "exp",
    "eye",
    "fill",
    "hstack",
    "inv",
    "iterate",
    "log",
    "maximum",
    "minimum",
    "ones",
    "program",
    "qr",
    "sqrt",
    "vstack",
    "zeros",
]
