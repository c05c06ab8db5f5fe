"""The evaluation of a program anew, from its inputs as they are."""

from collections.abc import Collection, Mapping

import numpy as np

from squallpy.base.semirings import ARITHMETIC
from squallpy.maintain.matrix.nodes import Name, Product, names
from squallpy.maintain.matrix.program import Statement
from squallpy.physical.matrix.passes import read_of
from squallpy.runtime.matrix.algebra import SingularError
from squallpy.runtime.matrix.errors import NamingOverflow, singular
from squallpy.runtime.matrix.program_views import ProgramViews
from squallpy.runtime.matrix.views import ArrayView, Factor, View

Values = Mapping[str, Factor]


def reevaluate(views: ProgramViews, kept: Collection[Name]) -> SingularError | None:
    """Evaluate all definitions, and store those that are `kept`.

    Those that depend on the inverse of a singular matrix are left out, and the first error is returned.
    """
    anf, values, error = views.maintained.anf, dict[str, Factor](), None
    stored = {name.name for name in kept}
    last = {name: at for at, d in enumerate(anf.definitions) for name in names(d.value)}
    views.touched = None
    missing: set[str] = set()
    sparse = set(views.sparse)
    old = {n.name: views.by_name.pop(n.name) for n in views.maintained.kept if n.name in views}
    for name, constant in anf.constants.items():
        values[name] = views.value(constant, values, views.sizes)
        if name in stored:
            views.store(anf.source(name), values[name])
    for at, definition in enumerate(anf.definitions):
        name = definition.name.name
        try:
            if missing and names(definition.value) & missing:
                missing.add(name)
            elif name in stored:
                _store(views, definition, values, sparse, old.pop(name, None))
            else:
                values[name] = _evaluated(views, definition, values, sparse)
        except SingularError:
            error = error or singular(views.maintained, definition.value)
            missing.add(name)
        for used in [name for name in values if last.get(name) == at]:
            del values[used]
    return error


def _store(views: ProgramViews, definition: Statement, values: Values, sparse: set[str], there: View | None) -> None:
    """Evaluate a view, in the memory of the one that was there if it can be."""
    value, name = definition.value, definition.name
    shape = name.rows.at(views.sizes), name.cols.at(views.sizes)
    if views.ring is not ARITHMETIC or not isinstance(there, ArrayView) or there.shape != shape:
        views.store(name, _evaluated(views, definition, values, sparse))
        return
    if isinstance(value, Product) and not names(value) & sparse:
        left, right = (views.value(factor, values, views.sizes) for factor in value.factors)
        np.matmul(left, right, out=there.room())
    else:
        there.assign(_evaluated(views, definition, values, sparse))
    views.by_name[name.name] = there


def _evaluated(views: ProgramViews, definition: Statement, values: Values, sparse: set[str]) -> Factor:
    """Evaluate a definition, a product by a sparse input as a visit to its cells."""
    if sparse and (found := read_of(definition, sparse)):
        view, read = found
        by = [views.value(read.by, values, views.sizes)]
        straight, across = views[view.name].pass_over(None, None, *(([], by) if read.transposed else (by, [])))
        (product,) = straight or across
        return product.T if read.turned else product
    with NamingOverflow(views.maintained, definition.name.name):
        return views.value(definition.value, values, views.sizes)
