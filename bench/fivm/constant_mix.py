"""Growth of the cost of a batch over a stream, of batches with one mix of relations.

Streams end one after another, so batches of the end are of other relations than those of the beginning, which cost more
or less. Here they are compared with batches of the same mix, and the growths are multiplied, as in a chained index:

    batches 150 to 249, of four relations   1.00 → 0.97 ms   × 0.97
    batches 250 to 349, of two              1.20 → 1.23 ms   × 1.03     →   0.99
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import prod
from statistics import median

import numpy as np
import numpy.typing as npt

from bench.data.tables import Stream

LEAST = 4
"""Batches of one mix, below which they are left out."""
Reals = npt.NDArray[np.float64]


def growth(stream: Stream, runs: Sequence[Mapping[int, float]], first: int) -> float | None:
    """Compute how much the cost of a batch of one mix grows from a batch to the end; None if nothing is comparable.

    Args:
        runs: Seconds by batch.
    """
    common = [batch for batch in range(first, stream.batches) if all(batch in run for run in runs)]
    spans = [list(batches) for _, batches in groupby(common, lambda batch: _mix(stream, batch))]
    found = [_growth(batches, runs) for batches in spans if len(batches) >= LEAST]
    return prod(found) if found else None


def _mix(stream: Stream, batch: int) -> tuple[tuple[str, int], ...]:
    """Count the rows of each relation in a batch; those that take turns may differ by one."""
    rows = {name: end - start for name, (start, end) in stream.replay.ranges(batch).items() if end > start}
    most = max(rows.values(), default=0)
    return tuple((name, round(20 * count / most)) for name, count in sorted(rows.items()))


def _growth(batches: Sequence[int], runs: Sequence[Mapping[int, float]]) -> float:
    """Compute the last by the first batch on a line through the medians of the runs (Theil and Sen's)."""
    x = np.array(batches, np.float64)
    y = np.array([median(run[batch] for run in runs) for batch in batches])
    i, j = np.triu_indices(len(x), 1)
    slope = float(np.median((y[j] - y[i]) / (x[j] - x[i])))
    middle = float(np.median(y - slope * x))
    return float((middle + slope * x[-1]) / (middle + slope * x[0]))
