"""Mutual information of pairs of discrete columns, from how often their values occur together.

(x, y) → count: (0, 0) → 2, (1, 1) → 2   →   ln 2
"""

import numpy as np
import numpy.typing as npt

from squallpy.runtime.models.cofactor_matrix import Reals

Codes = npt.NDArray[np.int64]


def mutual_information(pair: Codes, x: Codes, y: Codes, counts: Codes, pairs: int) -> Reals:
    """Compute I(X; Y) = Σ c(x, y)/n · ln(n·c(x, y) / (c(x)·c(y))), in nats, of many pairs of columns at once.

    It is at least 0, exactly 0 if the columns are independent or one is constant, and the same for rows in any order.

    Args:
        pair: The pair of columns that a row is of, from 0 to pairs − 1, shape (rows,).
        x, y: Codes of its values, shape (rows,); each (pair, x, y) is there once.
        counts: How often they occur together, shape (rows,); rows with less than 1 are left out.

    Returns:
        I of each pair, shape (pairs,); 0 for a pair without rows.
    """
    there = counts > 0
    pair, x, y, together = pair[there], x[there], y[there], counts[there].astype(float)
    n = np.bincount(pair, together, pairs)
    # NB: equal integers are equal after rounding, so that the logarithm is exactly 0 where they are
    ratio = (n[pair] * together) / (_marginal(pair, x, together) * _marginal(pair, y, together))
    terms = together * np.log(ratio)
    order = np.argsort(terms)
    sums = np.bincount(pair[order], terms[order], pairs)
    found: Reals = np.maximum(sums, 0.0) / np.maximum(n, 1.0)
    return found


def _marginal(pair: Codes, codes: Codes, counts: Reals) -> Reals:
    """Add up the counts of all rows of a row's pair and code."""
    _, code = np.unique(codes, return_inverse=True)
    _, group = np.unique(pair * (code.max(initial=0) + 1) + code, return_inverse=True)
    return np.asarray(np.bincount(group, counts), float)[group]
