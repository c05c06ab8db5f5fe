"""Variances, covariances and higher moments, from sums.

Sums of doubles are read in two words, the sum and what rounding has taken from it, and those of products likewise. So
values with a large mean have the variance that they have: of 100000003, 100000004, 100000006 and 100000007 it is 2.5,
where the squares, of 17 digits, would leave 4 of sums of one word.
"""

from collections.abc import Sequence
from math import comb
from typing import Any

import numpy as np

from squallpy.runtime.evaluate.exact_arithmetic import masked
from squallpy.runtime.evaluate.vectors import Vec, all_valid

_SPLIT = 2.0**27 + 1  # cuts a double in halves of 26 bits
_RESOLUTION = 2.0**-106  # of a sum in two words, for each number: what is less beside it is rounding
_STEPS = 16  # of what follows, each of which rounds likewise


def variance(sums: Sequence[Vec], scale: int, sample: bool) -> Vec:
    """Compute the covariance of numbers with themselves, which is not below 0."""
    values, valid = covariance(sums, scale, sample)
    return Vec(np.maximum(values, 0), valid)


def covariance(sums: Sequence[Vec], scale: int, sample: bool) -> Vec:
    """Compute (n·Σxy − Σx·Σy) / (n·(n − 1)), or / n²: exact up to the division if the sums are.

    Args:
        sums: n, Σx, Σy and Σxy; of doubles also what rounding took from each of these sums, and from each product.
        scale: The product's.
    """
    n, first, second, product, *rests = (np.asarray(masked(vec)) for vec in sums)
    with np.errstate(all="ignore"):
        if rests:
            spread = _spread(n.astype(np.float64), first, second, product, rests)
        else:
            n, first, second, product = (values.astype(object) for values in (n, first, second, product))
            spread = np.asarray(n * product - first * second, np.float64) / 10.0**scale
        count = np.asarray(n, np.float64)
        pairs = count * (count - sample)
        known = pairs > 0
        return Vec(spread / np.where(known, pairs, 1), all_valid(known, *(vec.valid for vec in sums)))


def _spread(n: Any, first: Any, second: Any, product: Any, rests: Sequence[Any]) -> Any:
    """Compute n·Σxy − Σx·Σy of sums of doubles in two words."""
    first_rest, second_rest, product_rest, rounded = rests
    (mine, low), (theirs, lower) = two_product(n, product), two_product(first, second)
    exactly = low - lower + n * (product_rest + rounded) - (first * second_rest + second * first_rest)
    spread = mine - theirs + np.where(np.isfinite(exactly), exactly, 0.0)
    is_rounding = np.isfinite(mine) & (np.abs(spread) <= (n + _STEPS) * _RESOLUTION * np.abs(mine))
    return np.where(is_rounding, 0.0, spread)


def two_sum(x: Any, y: Any) -> tuple[Any, Any]:
    """Add doubles; returned with what rounding took from the sum."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def two_product(x: Any, y: Any) -> tuple[Any, Any]:
    """Multiply doubles; returned with what rounding took from the product, 0 where that is out of range.

    Source: T. J. Dekker, *A floating-point technique for extending the available precision*, 1971.
    """
    product = x * y
    (x_high, x_low), (y_high, y_low) = _halves(x), _halves(y)
    rest = ((x_high * y_high - product) + x_high * y_low + x_low * y_high) + x_low * y_low
    return product, np.where(np.isfinite(rest), rest, 0.0)


def _halves(x: Any) -> tuple[Any, Any]:
    cut = _SPLIT * x
    high = cut - (cut - x)
    return high, x - high


def standardised_moment(sums: list[Vec]) -> Vec:
    """Compute the skewness of n, Σx, Σx², Σx³, or the kurtosis less 3 if Σx⁴ is there; NULL where all x are alike.

    With central moments nᵏ·mₖ = Σ C(k, i) · (−Σx)ᵏ⁻ⁱ · nⁱ⁻¹ · Σxⁱ, whole numbers of some scale if the sums are exact,
    it is nᵏ·mₖ / (n²·m₂)^(k/2): the scale and the powers of n cancel out.
    """
    count: Any
    count, *totals = (np.asarray(masked(vec)) for vec in sums)
    is_real, known, order = totals[1].dtype.kind == "f", np.greater(count, 0), len(totals)
    with np.errstate(all="ignore"):
        if is_real:  # huge and tiny ones in units of the root of the mean square, so that no power overflows
            count = np.where(known, count, 1).astype(np.float64)
            square = np.maximum(totals[1], 0) / count
            unit = np.where((square > 0) & ((square < 1e-60) | (square > 1e60)), np.sqrt(square), 1.0)
            totals = [total / unit**power for power, total in enumerate(totals, 1)]
        else:
            count, *totals = (values.astype(object) for values in (count, *totals))
        spread = np.asarray(_central(count, totals, 2), np.float64)
        least = 4 * np.finfo(float).eps * np.asarray(count * totals[1], np.float64) if is_real else 0
        varies = known & ~(spread <= least)  # NB: NaN is no NULL
        moment = np.asarray(_central(count, totals, order), np.float64)
        value = moment / np.where(varies, spread, 1) ** (order / 2) - 3 * (order == 4)
    return Vec(value, all_valid(varies, *(vec.valid for vec in sums)))


def _central(n: Any, totals: Sequence[Any], order: int) -> Any:
    """Compute n to the power of the order times the central moment, of n, Σx, Σx² …"""
    mean = totals[0]
    terms = [comb(order, i) * (-mean) ** (order - i) * n ** (i - 1) * totals[i - 1] for i in range(1, order + 1)]
    return sum(terms[1:], (-mean) ** order + terms[0])
