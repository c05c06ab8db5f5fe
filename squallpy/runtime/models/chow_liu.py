"""Chow-Liu trees: the best approximation of a joint distribution by one that is a tree of pairs.

I(A; B) = 0.5, I(A; C) = 0.1, I(B; C) = 0.3   →   A – B, B – C

Source: Chow and Liu, IEEE Trans. Inf. Theory 14(3), 1968; Prim, Bell Syst. Tech. J. 36, 1957.
"""

import numpy as np

from squallpy.runtime.models.cofactor_matrix import Reals
from squallpy.runtime.models.mutual_information import Codes

TIE = 1e-12  # relative difference below which values differ by rounding only


def chow_liu(values: Reals, columns: int) -> tuple[Codes, Codes, Reals]:
    """Find the maximum spanning tree over columns; of edges that tie, those of the first columns are taken.

    Values that are equal but for rounding tie: any column that determines A has I = H(A) with it.

    Args:
        values: I of the pairs (0, 1), (0, 2), … (1, 2), …, shape (columns · (columns − 1)/2,).

    Returns:
        a, b and the value of each edge, a < b, in the order of a, then b, each of shape (columns − 1,).
    """
    a, b = np.triu_indices(columns, 1)
    order = _descending(values)
    # places of the edges in an order without ties, so that only one tree is the best
    places = np.full((columns, columns), len(order))
    places[a[order], b[order]] = places[b[order], a[order]] = np.arange(len(order))
    outside, nearest, taken = np.arange(columns) > 0, places[0], []
    for _ in range(1, columns):
        column = np.argmin(np.where(outside, nearest, len(order)))
        taken.append(nearest[column])
        outside[column] = False
        nearest = np.minimum(nearest, places[column])
    edges = np.sort(order[np.array(taken, np.intp)])
    return a[edges], b[edges], values[edges]


def _descending(values: Reals) -> Codes:
    """Order values from the largest on, those that tie by their place."""
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    rank = np.empty(len(values), np.int64)
    rank[order] = np.cumsum(np.append(False, ordered[:-1] - ordered[1:] > TIE * ordered[:-1])[: len(values)])
    return np.argsort(rank, kind="stable")
