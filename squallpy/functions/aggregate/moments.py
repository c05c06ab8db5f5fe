"""Variances, covariances and regressions, exact up to the last division if the inputs are exact."""

from squallpy.functions.aggregate.entries import Derived, Paired, aggregate

AGGREGATES = (
    aggregate("VAR_POP(x)", Derived(), "the variance", "VAR_POP(x) → 2.25"),
    aggregate(
        "VAR_SAMP(x)", Derived(), "the variance of a sample; NULL of one value", "VAR_SAMP(x) → 3.0", "VARIANCE VAR"
    ),
    aggregate("STDDEV_POP(x)", Derived(), "the standard deviation", "STDDEV_POP(x) → 1.5"),
    aggregate(
        "STDDEV_SAMP(x)",
        Derived(),
        "the standard deviation of a sample; NULL of one value",
        "STDDEV_SAMP(y - x) → 1.7320508075688772",
        "STDDEV STD",
    ),
    aggregate(
        "SKEWNESS(x)",
        Derived(),
        "the third moment about the mean, of x in standard deviations; NULL if all x are alike",
        "SKEWNESS(x * x) → 1.0970254493638671",
    ),
    aggregate(
        "KURTOSIS(x)",
        Derived(),
        "the fourth moment about the mean, of x in standard deviations, less 3; NULL if all x are alike",
        "KURTOSIS(x) → -0.8148148148148149",
    ),
    aggregate("COVAR_POP(y, x)", Paired(), "the covariance", "COVAR_POP(y, x) → 4.5"),
    aggregate("COVAR_SAMP(y, x)", Paired(), "the covariance of a sample; NULL of one pair", "COVAR_SAMP(y, x) → 6.0"),
    aggregate("CORR(y, x)", Paired(), "the correlation, from -1 to 1", "CORR(y, x) → 1.0"),
    aggregate("REGR_COUNT(y, x)", Paired(), "the rows that have both numbers", "REGR_COUNT(y, x) → 4"),
    aggregate("REGR_AVGX(y, x)", Paired(), "the mean of x", "REGR_AVGX(y, x) → 2.5"),
    aggregate("REGR_AVGY(y, x)", Paired(), "the mean of y", "REGR_AVGY(y, x) → 6.0"),
    aggregate(
        "REGR_SXX(y, x)", Paired(), "the sum of the squared differences of x from its mean", "REGR_SXX(y, x) → 9.0"
    ),
    aggregate(
        "REGR_SYY(y, x)", Paired(), "the sum of the squared differences of y from its mean", "REGR_SYY(y, x) → 36.0"
    ),
    aggregate("REGR_SXY(y, x)", Paired(), "the sum of the products of both differences", "REGR_SXY(y, x) → 18.0"),
    aggregate("REGR_SLOPE(y, x)", Paired(), "the slope of the line of least squares", "REGR_SLOPE(y, x) → 2.0"),
    aggregate(
        "REGR_INTERCEPT(y, x)", Paired(), "the y of the line of least squares at x = 0", "REGR_INTERCEPT(y, x) → 1.0"
    ),
    aggregate("REGR_R2(y, x)", Paired(), "the square of the correlation", "REGR_R2(y, x) → 1.0"),
)
