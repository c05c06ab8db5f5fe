"""The evaluation of a program anew, from its inputs as they are."""

from collections.abc import Collection, Mapping
from functools import partial

import numpy as np

from squallpy.base.semirings import ARITHMETIC
from squallpy.maintain.matrix.matrix_expressions import Iterate, Let, Name, Product, names
from squallpy.maintain.matrix.matrix_program import Statement
from squallpy.physical.matrix.view_passes import match_read
from squallpy.runtime.matrix.errors import NamingOverflow, undefined
from squallpy.runtime.matrix.iterations import UndefinedError, has_converged, iterate_until
from squallpy.runtime.matrix.program_views import ProgramViews
from squallpy.runtime.matrix.stored_views import ArrayView, Factor, MatrixView

Values = Mapping[str, Factor]


class Evaluation:
    """The definitions of a program over its views."""

    def __init__(self, views: ProgramViews) -> None:
        self._views, self._anf = views, views.maintained.anf
        self._last = {name: at for at, d in enumerate(self._anf.definitions) for name in names(d.value)}
        self._sparse: set[str] = set()

    def run(self, kept: Collection[Name]) -> UndefinedError | None:
        """Evaluate all definitions, and store those that are `kept`.

        Those that depend on the inverse of a singular matrix are left out, and the first error is returned.
        """
        views, values, error = self._views, dict[str, Factor](), None
        self._sparse, views.touched = set(views.sparse), None
        stored = {name.name for name in kept}
        missing: set[str] = set()
        old = {n.name: views.by_name.pop(n.name) for n in views.maintained.kept if n.name in views}
        for name, constant in self._anf.constants.items():
            values[name] = views.value(constant, values, views.sizes)
            if name in stored:
                views.store(self._anf.source(name), values[name])
        for at, definition in enumerate(self._anf.definitions):
            name = definition.name.name
            try:
                if missing and names(definition.value) & missing:
                    missing.add(name)
                elif name in stored:
                    self._store(definition, values, old.pop(name, None))
                else:
                    values[name] = self._evaluated(definition, values)
            except UndefinedError:
                error = error or undefined(views.maintained, definition.value)
                missing.add(name)
            for used in [name for name in values if self._last.get(name) == at]:
                del values[used]
        return error

    def _store(self, definition: Statement, values: Values, there: MatrixView | None) -> None:
        """Evaluate a view, in the memory of the one that was there if it can be."""
        views, value, name = self._views, definition.value, definition.name
        shape = name.rows.at(views.sizes), name.cols.at(views.sizes)
        if views.ring is not ARITHMETIC or not isinstance(there, ArrayView) or there.shape != shape:
            views.store(name, self._evaluated(definition, values))
            return
        if isinstance(value, Product) and not (self._sparse and names(value) & self._sparse):
            left, right = (views.value(factor, values, views.sizes) for factor in value.factors)
            np.matmul(left, right, out=there.buffer())
        else:
            there.assign(self._evaluated(definition, values))
        views.by_name[name.name] = there

    def _evaluated(self, definition: Statement, values: Values) -> Factor:
        """Evaluate a definition, a product by a sparse input as a visit to its cells."""
        views = self._views
        if isinstance(definition.value, Iterate) and self._sparse & names(definition.value):
            return self._iterated(definition.value, values)
        if self._sparse and (found := match_read(definition, self._sparse)):
            view, read = found
            by = [views.value(read.factor, values, views.sizes)]
            straight, across = views[view.name].pass_over(None, None, *(([], by) if read.transposed else (by, [])))
            (product,) = straight or across
            return product.T if read.turned else product
        with NamingOverflow(views.maintained, definition.name.name):
            return views.value(definition.value, values, views.sizes)

    def _iterated(self, iteration: Iterate, values: Values) -> Factor:
        """Evaluate an iteration over sparse inputs, step by step."""

        def step(passing: Factor) -> Factor:
            known, body = {**values, iteration.name.name: passing}, iteration.body
            while isinstance(body, Let):
                known[body.name.name] = self._evaluated(Statement(body.name, body.value), known)
                body = body.body
            return self._views.value(body, known, self._views.sizes)

        start = self._views.value(iteration.start, values, self._views.sizes)
        return iterate_until(iteration, start, step, partial(has_converged, ring=self._views.ring))
