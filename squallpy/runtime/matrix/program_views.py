"""The stored matrices of a program by name: its inputs, and the views that are kept."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.semirings import BOOLEAN
from squallpy.maintain.matrix.decompositions import FactorUpdate
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.materialise import IncrementalProgram
from squallpy.maintain.matrix.matrix_expressions import Matrix, Name
from squallpy.maintain.matrix.meta_information import NOTHING
from squallpy.runtime.matrix.affected_cells import Touched, touch
from squallpy.runtime.matrix.algebra import evaluate, pad
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.errors import NamingOverflow
from squallpy.runtime.matrix.factors import rotate
from squallpy.runtime.matrix.packed_boolean import PackedMatrix
from squallpy.runtime.matrix.packed_boolean import evaluate as evaluate_bits
from squallpy.runtime.matrix.sparse_view import SparseView, is_sparse
from squallpy.runtime.matrix.stored_views import Array, BitView, Factor, MatrixView, store_view, visit_view
from squallpy.runtime.matrix.undo_log import UndoLog


class ProgramViews:
    """Inputs and kept views at the present dimensions, with what has been touched in them and how to undo it."""

    def __init__(self, maintained: IncrementalProgram, inputs: Mapping[str, Array | SparseView]) -> None:
        self.maintained, self.ring = maintained, maintained.program.ring
        self.sizes = bound_sizes(maintained, inputs)
        self.touched: Touched | None = None  # None: anything anywhere
        self.by_name: dict[str, MatrixView] = {}
        self.undo = UndoLog()
        for source in maintained.program.inputs:
            self.store(source.name, inputs[source.name.name])

    def __getitem__(self, name: str) -> MatrixView:
        return self.by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def shape(self, name: str) -> tuple[int, int]:
        """Compute the rows and columns of a matrix at the present dimensions."""
        named = self.maintained.find_matrix(name)
        return named.rows.at(self.sizes), named.cols.at(self.sizes)

    def at(self, name: str, rows: Array, cols: Array) -> Array:
        """Return single entries of a view; zero outside of it."""
        view = self.by_name[name]
        inside = (rows < view.shape[0]) & (cols < view.shape[1])
        out = np.full(len(rows), self.ring.zero, self.ring.dtype)
        if isinstance(view, SparseView):
            out[inside] = view.at(rows[inside], cols[inside])
            return out
        some, row_of = np.unique(rows[inside], return_inverse=True)
        out[inside] = view.read(some, slice(None))[row_of, cols[inside]]
        return out

    @property
    def sparse(self) -> dict[str, SparseView]:
        """The inputs that are stored as their cells."""
        views = {name: view for name, view in self.by_name.items() if isinstance(view, SparseView)}
        return {name: view for name, view in views.items() if view.sparse}

    @property
    def nbytes(self) -> int:
        """Bytes of all views."""
        return sum(view.nbytes for view in self.by_name.values())

    def store(self, name: Name, values: "Factor | SparseView") -> None:
        """Store a matrix in the layout that suits its values and what is known of it."""
        self.by_name[name.name] = self._view(name, values)

    def _view(self, name: Name, values: "Factor | SparseView") -> MatrixView:
        if isinstance(values, SparseView):
            return values
        symmetric = self.maintained.anf.facts.get(name.name, NOTHING).symmetric
        if self.maintained.program.input(name.name) and is_sparse(values, self.ring):
            return SparseView.of(values, self.ring)
        if isinstance(values, PackedMatrix):
            return BitView(values.rows.copy(), values.shape[1], symmetric)
        return store_view(np.asarray(values, self.ring.dtype), self.ring, symmetric)

    def grow(self, name: str) -> None:
        """Append rows and columns of zeros to a view, as many as its dimensions have grown by."""
        view, shape = self.by_name[name], self.shape(name)
        if view.shape == shape:
            return
        if isinstance(view, SparseView) and view.sparse:
            self.by_name[name] = view.grow(shape)
        else:
            values = pad(view.read(slice(None), slice(None)), shape, self.ring)
            self.store(self.maintained.find_matrix(name), values)

    def visit(
        self, name: str, u: Factor, v: Factor, xs: Sequence[Factor] = (), ys: Sequence[Factor] = (), prune: bool = False
    ) -> tuple[list[Factor], list[Factor], Factor, Factor]:
        """Multiply a view by xs, and its transpose by ys, then add u·v to it, if there is one.

        Returns the products, and u and v, with `prune` only as much of them as made a difference.
        """
        view = self.by_name[name]
        with NamingOverflow(self.maintained, name):
            straight, across, u, v = visit_view(view, u, v, xs, ys, prune)
        if u is not None:
            if self.touched is not None:
                touch(self.touched, name, u, v, self.ring)
            if self.undo.is_open:
                self.undo.record(partial(view.pass_over, -u, v, [], []))
        return straight, across, u, v

    def rotate(self, name: str, update: FactorUpdate, u: Array, v: Array) -> None:
        """Update a triangular factor in place, as its square changes by u·v; DowndateError as for `factors.rotate`."""
        view = self.by_name[name]
        if self.touched is not None:
            self.touched[name] = tuple(np.ones(extent, bool) for extent in view.shape)  # type: ignore[assignment]
        rotate(view.read(slice(None), slice(None)), u, v, update)

    def add_at(self, name: str, cells: Cells) -> None:
        """Add to entries of a view."""
        view = self.by_name[name]
        with NamingOverflow(self.maintained, name):
            view.add_at(cells.rows, cells.cols, cells.values)
        if self.undo.is_open:
            self.undo.record(partial(view.add_at, cells.rows, cells.cols, -cells.values))

    def snapshot(self) -> Callable[[], None]:
        """Return a function that puts back the present views and dimensions, not their contents."""
        views, sizes = dict(self.by_name), self.sizes

        def restore() -> None:
            self.by_name, self.sizes, self.touched = views, sizes, None

        return restore

    def value(self, matrix: Matrix, values: Mapping[str, Factor], sizes: Sizes) -> Factor:
        """Compute an operation on `values` and views."""

        def read(name: str) -> Factor:
            return values[name] if name in values else self.by_name[name].whole()

        if isinstance(matrix, Name):
            return read(matrix.name)
        return evaluate_bits(matrix, read, sizes) if self.ring is BOOLEAN else evaluate(matrix, read, sizes, self.ring)


def bound_sizes(maintained: IncrementalProgram, inputs: Mapping[str, Array | SparseView]) -> dict[str, int]:
    """Solve the symbols of a program's dimensions for the shapes of its inputs; SQ2011 where these disagree."""
    sizes: dict[str, int] = {}
    for i in maintained.program.inputs:
        if i.name.name not in inputs:
            raise SquallError("SQ2012", f"no values for the matrix {i.name}")
        for size, extent in zip((i.name.rows, i.name.cols), inputs[i.name.name].shape, strict=True):
            if len(size.symbols) == 1 and size.symbols[0][1] == 1:
                sizes.setdefault(size.symbols[0][0], extent - size.constant)
            if set(dict(size.symbols)) <= set(sizes) and size.at(sizes) != extent:
                message = (
                    f"{i.name} is {' × '.join(map(str, inputs[i.name.name].shape))}, where {size} is {size.at(sizes)}"
                )
                raise SquallError("SQ2011", message)
    return sizes
