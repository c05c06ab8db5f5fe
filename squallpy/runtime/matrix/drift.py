"""Drift of views from their definitions, as rounding adds up: a probe evaluated on views."""

from collections.abc import Iterable, Mapping

import numpy as np

from squallpy.base.semirings import ARITHMETIC
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.drift_probe import Look, Probe
from squallpy.physical.matrix.view_passes import match_read
from squallpy.runtime.matrix.algebra import evaluate, norm
from squallpy.runtime.matrix.stored_views import Array, MatrixView

CHECK = 256  # updates between looks
DRIFT = 1e-9  # relative


def random_vectors(probe: Probe, sizes: Sizes, seed: int) -> dict[str, Array]:
    """Draw the random vectors of a probe, the same for the same seed."""
    random = np.random.default_rng(seed)
    return {name.name: random.standard_normal((name.rows.at(sizes), 1)) for name in probe.vectors}


def measure_drift(probe: Probe, views: Mapping[str, MatrixView], sizes: Sizes, seed: int) -> float:
    """Compute the largest relative difference between a view and its definition."""
    values = random_vectors(probe, sizes, seed)
    for step in probe.steps:
        found = match_read(step, set(views))
        if found is None:
            values[step.name.name] = evaluate(step.value, values.__getitem__, sizes, ARITHMETIC)
            continue
        view, read = found
        by = evaluate(read.factor, values.__getitem__, sizes, ARITHMETIC)
        straight, across = views[view.name].pass_over(None, None, *(([], [by]) if read.transposed else ([by], [])))
        seen = (*straight, *across)[0]
        values[step.name.name] = seen.T if read.turned else seen
    return largest_difference(probe.looks, values)


def largest_difference(looks: Iterable[Look], values: Mapping[str, Array]) -> float:
    """Find the largest relative difference among the looks of a probe."""
    return max((norm(values[o.off.name]) / (norm(values[o.right.name]) or 1.0) for o in looks), default=0.0)
