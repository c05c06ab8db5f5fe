"""Regressions from cofactor matrices, beside NumPy's least squares over the rows."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.runtime.models.cofactor_matrix import CofactorMatrix
from squallpy.runtime.models.least_squares import LinearRegression, begin_at, descend, gradient_descent, least_squares
from squallpy.runtime.models.normal_equations import normal_equations

Reals = NDArray[np.float64]
Solver = Callable[[CofactorMatrix, LinearRegression], Any]
SOLVERS = pytest.mark.parametrize("solver", [least_squares, gradient_descent])
SEEDS, WORDS, SIZES = st.integers(0, 2**32 - 1), st.integers(1, 2), st.integers(1, 5)


def cofactors(rows: Reals, words: int = 2) -> CofactorMatrix:
    """The cofactor matrix of rows: added up in doubles, or exactly and rounded to two of them."""
    if words == 1:
        return CofactorMatrix(len(rows), rows.sum(axis=0)[None], (rows.T @ rows)[None])
    exact = np.array([[Fraction(x) for x in row] for row in rows.tolist()], object).reshape(rows.shape)
    ones = np.full(len(rows), Fraction(1), object)
    return CofactorMatrix(len(rows), two_words(ones @ exact), two_words(exact.T @ exact))


def two_words(values: NDArray[np.object_]) -> Reals:
    high = values.astype(float)
    return np.array([high, (values - np.vectorize(Fraction, otypes=[object])(high)).astype(float)])


def expected(rows: Reals, intercept: bool = True, ridge: float = 0.0) -> Reals:
    """What minimises |Xw − y|²/n + λ|w|², from the rows; the last column is y.

    With an intercept X and y are centred: there may be cancellation in a column of ones beside large values.
    """
    means = rows.mean(axis=0) if intercept else np.zeros(rows.shape[1])
    x, y = (rows - means)[:, :-1], (rows - means)[:, -1]
    k = x.shape[1]
    x, y = np.vstack([x, np.sqrt(ridge * len(rows)) * np.eye(k)]), np.append(y, np.zeros(k))
    norms = np.sqrt((x**2).sum(axis=0))
    weights = np.linalg.lstsq(x / norms, y, rcond=None)[0] / norms
    return np.append(means[-1] - means[:-1] @ weights, weights) if intercept else weights


def draw_rows(seed: int, features: int, rows: int = 30) -> Reals:
    """Rows of features of mean 1 and deviation 1, and a label that they determine but for noise."""
    draw = np.random.default_rng(seed)
    x = draw.normal(1, 1, (rows, features))
    return np.column_stack([x, x @ draw.normal(0, 1, features) + draw.normal(2, 0.3, rows)])


def model(rows: Reals, intercept: bool = True, ridge: float = 0.0) -> LinearRegression:
    """The regression of the last column on all others."""
    return LinearRegression(rows.shape[1] - 1, range(rows.shape[1] - 1), intercept, ridge)


def close(found: Reals | None, wanted: Reals, relative: float) -> bool:
    """True if the difference is small beside the largest coefficient."""
    return found is not None and np.abs(found - wanted).max(initial=0) <= relative * np.abs(wanted).max(initial=0)


@SOLVERS
@given(SEEDS, SIZES, WORDS, st.booleans(), st.sampled_from([0.0, 1e-9, 0.1, 100.0]))
def oracle_coefficients_are_those_over_the_rows(
    solver: Solver, seed: int, features: int, words: int, intercept: bool, ridge: float
) -> None:
    rows = draw_rows(seed, features)
    found = solver(cofactors(rows, words), model(rows, intercept, ridge))
    assert close(found, expected(rows, intercept, ridge), 1e-11 if solver is least_squares else 1e-9)


@SOLVERS
@given(SEEDS, SIZES, WORDS, st.lists(st.floats(-8, 8), min_size=6, max_size=6), st.booleans())
def property_coefficients_scale_with_columns(
    solver: Solver, seed: int, features: int, words: int, exponents: list[float], intercept: bool
) -> None:
    rows, scales = draw_rows(seed, features), 10.0 ** np.array(exponents[: features + 1])
    found = solver(cofactors(rows * scales, words), model(rows, intercept))
    assert found is not None
    found = found / scales[-1] * np.append(np.ones(int(intercept)), scales[:-1])
    assert close(found, expected(rows, intercept), 1e-11 if solver is least_squares else 1e-9)


@SOLVERS
@given(SEEDS, SIZES, st.sampled_from([0.0, 0.1]), st.integers(0, 9))
def property_means_cost_no_accuracy_where_sums_have_two_words(
    solver: Solver, seed: int, features: int, ridge: float, exponent: int
) -> None:
    rows = np.round(draw_rows(seed, features) * 1024) / 1024  # so that shifted values are exact
    found = solver(cofactors(rows + 10**exponent), model(rows, ridge=ridge))
    assert found is not None
    assert close(found[1:], expected(rows, ridge=ridge)[1:], 1e-9)


@given(SEEDS, SIZES, st.integers(0, 3))
def property_means_up_to_a_thousand_deviations_are_fine_in_one_word(seed: int, features: int, exponent: int) -> None:
    rows = draw_rows(seed, features) + 10.0**exponent
    assert close(least_squares(cofactors(rows, 1), model(rows)), expected(rows), 1e-15 * 10 ** (2 * exponent + 3))


@SOLVERS
@given(SEEDS, SIZES, WORDS, st.integers(-9, 9), st.integers(0, 4))
def property_constant_features_determine_nothing(
    solver: Solver, seed: int, features: int, words: int, exponent: int, at: int
) -> None:
    value = np.random.default_rng(seed).normal(0, 1) * 10.0**exponent
    rows = np.insert(draw_rows(seed, features), at := min(at, features), value, axis=1)
    assert solver(cofactors(rows, words), model(rows)) is None
    rest = np.delete(rows, at, axis=1)
    found = solver(cofactors(rows, words), model(rows, ridge=0.5))
    assert close(found, np.insert(expected(rest, ridge=0.5), at + 1, 0.0), 1e-9)
    assert found[at + 1] == 0


@given(SEEDS, st.integers(2, 40), WORDS, st.booleans(), st.integers(-8, 8), st.integers(-3, 3))
def property_collinear_features_determine_nothing(
    seed: int, features: int, words: int, intercept: bool, exponent: int, shift: int
) -> None:
    rows, draw = draw_rows(seed, features, 60 if words == 1 else 20), np.random.default_rng(seed)
    some = draw.choice(features, draw.integers(2, features + 1), replace=False)
    # NB: scaled by a power of ten and rounded, so that it is collinear within rounding only
    rows[:, some[0]] = rows[:, some[1:]] @ draw.normal(0, 1, len(some) - 1) * 10.0**exponent
    rows[:, some[0]] += shift * 10.0**exponent * intercept
    assert least_squares(cofactors(rows, words), model(rows, intercept)) is None
    assert gradient_descent(cofactors(rows, words), model(rows, intercept)) is None
    assert least_squares(cofactors(rows, words), model(rows, intercept, 0.1)) is not None


@given(SEEDS, st.integers(2, 5), st.integers(0, 6))
def property_collinear_features_are_found_where_sums_in_one_word_have_lost_them(
    seed: int, features: int, exponent: int
) -> None:
    rows = draw_rows(seed, features, 1000) + 10.0**exponent
    rows[:, 0] = 3 * rows[:, 1] + rows[:, features - 1] - 7
    x = np.cumsum(rows, axis=0)[-1:], np.cumsum(rows[:, :, None] * rows[:, None], axis=0)[-1:]
    assert least_squares(CofactorMatrix(len(rows), *x), model(rows)) is None


@given(SEEDS, SIZES)
def property_collinear_features_are_found_behind_almost_collinear_ones(seed: int, features: int) -> None:
    rows, draw = draw_rows(seed, features + 2), np.random.default_rng(seed)
    rows[:, 1] = rows[:, 0] + 1e-5 * draw.normal(0, 1, len(rows))
    assert least_squares(cofactors(rows), model(rows)) is not None
    rows = np.insert(rows, 2, rows[:, 1] - rows[:, 0], axis=1)
    assert least_squares(cofactors(rows), model(rows)) is None


@given(SEEDS, SIZES, WORDS, st.booleans(), st.integers(0, 5))
def property_fewer_rows_than_unknowns_determine_nothing(
    seed: int, features: int, words: int, intercept: bool, count: int
) -> None:
    rows = draw_rows(seed, features, min(count, features + intercept - 1))
    assert least_squares(cofactors(rows, words), model(rows, intercept)) is None
    ridge = least_squares(cofactors(rows, words), model(rows, intercept, 0.1))
    assert close(ridge, expected(rows, intercept, 0.1), 1e-9) if len(rows) else ridge is None


@given(SEEDS, st.integers(2, 5), st.integers(1, 2))
def property_residues_of_deleted_rows_determine_nothing(seed: int, features: int, count: int) -> None:
    rows = draw_rows(seed, features, 1000)
    there = [cofactors(part, 1) for part in (rows, rows[count:])]
    sums, products = there[0].sums - there[1].sums, there[0].products - there[1].products
    assert least_squares(CofactorMatrix(count, sums, products), model(rows)) is None


@SOLVERS
def test_nothing_is_left_of_no_rows_and_of_more_deletes_than_rows(solver: Solver) -> None:
    rows = draw_rows(1, 2)
    there = cofactors(rows)
    for count in (0, -30):
        for ridge in (0.0, 0.1):
            assert solver(CofactorMatrix(count, there.sums, there.products), model(rows, True, ridge)) is None


@SOLVERS
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_without_features_the_intercept_is_the_mean(solver: Solver, ridge: float) -> None:
    rows = np.array([[2.0], [4.0], [9.0]])
    assert np.array_equal(solver(cofactors(rows), model(rows, ridge=ridge)), [5.0])
    assert solver(cofactors(rows), model(rows, False, ridge)).shape == (0,)


@SOLVERS
def test_a_constant_label_has_no_slope(solver: Solver) -> None:
    rows = draw_rows(3, 2)
    rows[:, -1] = 0.1
    found = solver(cofactors(rows, 1), model(rows))
    assert found is not None and not found[1:].any() and found[0] == pytest.approx(0.1)


@SOLVERS
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("words", [1, 2])
def test_sums_that_are_not_finite_leave_nan(solver: Solver, value: float, words: int) -> None:
    there = cofactors(draw_rows(5, 3), words)
    there.products[0, 1, :] = there.products[0, :, 1] = there.sums[0, 1] = value
    with np.errstate(all="raise"):
        for intercept in (False, True):
            found = solver(there, LinearRegression(3, (0, 1), intercept))
            assert found is not None and found.shape == (2 + intercept,) and np.isnan(found).all()
            assert np.isfinite(solver(there, LinearRegression(3, (0, 2), intercept))).all()


@SOLVERS
def test_squares_that_overflow_leave_nan(solver: Solver) -> None:
    rows = draw_rows(5, 2) * np.array([1e153, 1.0, 1.0])
    with np.errstate(all="raise"):
        assert np.isnan(solver(cofactors(rows, 1), model(rows))).all()


@given(SEEDS, st.integers(1, 5), WORDS, st.booleans())
def property_a_model_of_some_columns_is_that_over_these(seed: int, features: int, words: int, intercept: bool) -> None:
    rows, draw = draw_rows(seed, features), np.random.default_rng(seed)
    label, *some = draw.permutation(features + 1)[: draw.integers(1, features + 2)].tolist()
    found = least_squares(cofactors(rows, words), LinearRegression(label, some, intercept))
    assert close(found, expected(rows[:, [*some, label]], intercept), 1e-9)


@given(SEEDS, SIZES, WORDS)
def property_a_triangle_is_the_whole_matrix(seed: int, columns: int, words: int) -> None:
    whole = cofactors(draw_rows(seed, columns), words)
    rows, cols = np.tril_indices(columns + 1)
    made = CofactorMatrix.from_triangle(whole.count, whole.sums, whole.products[:, rows, cols])
    assert np.array_equal(made.products, whole.products)


@given(SEEDS, st.integers(1, 20), st.floats(0, 3))
def property_descent_converges_from_any_start(seed: int, size: int, exponent: float) -> None:
    draw = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(draw.normal(0, 1, (size, size)))
    matrix = (basis * np.logspace(-exponent, 0, size)) @ basis.T
    right, start = draw.normal(0, 1, size), draw.normal(0, 10.0 ** draw.integers(-3, 9), size)
    wanted = np.linalg.solve(matrix, right)
    found, _ = descend(matrix, right, start, 10_000)
    assert close(found, wanted, 1e-8)
    path = [descend(matrix, right, start, steps)[0] for steps in range(20)]
    values = [at @ (matrix @ at) / 2 - right @ at for at in path]
    terms = [abs(at) @ abs(matrix) @ abs(at) / 2 + abs(right) @ abs(at) for at in path]  # their rounding is in a value
    assert (np.diff(values) <= 1e-14 * np.array(terms[:-1])).all()
    again, iterations = descend(matrix, right, found, 10_000)
    assert close(again, wanted, 1e-8) and iterations <= 1000  # NB: 3,000 random ones take 419 at most, to rounding


@given(SEEDS, SIZES, st.booleans())
def property_descent_begins_with_the_coefficients_of_before(seed: int, features: int, intercept: bool) -> None:
    rows = draw_rows(seed, features)
    there, regression, wanted = cofactors(rows), model(rows, intercept), expected(rows, intercept)
    moments = there.covariances() if intercept else there.moments()
    equations = normal_equations(moments, np.zeros(features + 1), 0.0)
    assert equations is not None and not begin_at(equations, None).any()
    start = begin_at(equations, wanted)
    assert descend(equations.matrix, equations.right, start, 5)[1] < 5
    assert close(start * equations.scale, wanted[intercept:], 1e-14)
    for before in (wanted, wanted * 1.2, wanted * np.nan, None):
        assert close(gradient_descent(there, regression, before), wanted, 1e-10)


def test_descent_that_takes_too_long_is_the_closed_form() -> None:
    rows = draw_rows(7, 20)
    rows[:, :-1] = rows[:, :1] + 1e-5 * rows[:, :-1]
    there, regression = cofactors(np.round(rows * 2**40) / 2**40), model(rows)
    found, wanted = gradient_descent(there, regression), least_squares(there, regression)
    assert found is not None and wanted is not None and np.array_equal(found, wanted)
