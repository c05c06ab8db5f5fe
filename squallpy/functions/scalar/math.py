"""Functions of numbers."""

from squallpy.base.types import BIGINT
from squallpy.functions.entries import Function, Operation, declare_derived, native
from squallpy.functions.type_rules import (
    WHOLE,
    bits,
    real,
    takes,
    type_floor,
    type_round,
    type_signed,
    type_truncate,
    whole_quotient,
)


def _real(syntax: str, doc: str, example: str) -> Function:
    """Declare a function of one DOUBLE, NULL only for NULL."""
    return native(syntax, real, doc, example)


FUNCTIONS = (
    declare_derived("NEGATIVE(x)", "x with the other sign", "NEGATIVE(3) → -3"),
    declare_derived("POSITIVE(x)", "x", "POSITIVE(-3) → -3"),
    native("ABS(x)", type_signed, "the absolute value; BIGINT of an INT", "ABS(-3) → 3"),
    native("SIGN(x)", real, "-1.0, 0.0 or 1.0, as x is below, at or above 0", "SIGN(-3) → -1.0", "SIGNUM"),
    declare_derived(
        "ROUND(x [, n])", "x with n digits after the point, half away from zero", "ROUND(2.345, 2) → 2.35", constant=1
    ),
    declare_derived(
        "BROUND(x [, n])",
        "x with n digits after the point, half to the even one",
        "BROUND(2.345, 2) → 2.34",
        constant=1,
    ),
    declare_derived(
        "FLOOR(x [, n])", "the greatest number of n digits after the point up to x", "FLOOR(-1.5) → -2", constant=1
    ),
    declare_derived(
        "CEIL(x [, n])",
        "the least number of n digits after the point from x on",
        "CEIL(1.2) → 2",
        "CEILING",
        constant=1,
    ),
    native(
        "DIV(a, b)",
        whole_quotient,
        "the quotient of exact numbers, cut to an integer; NULL where b is 0",
        "DIV(7, 2) → 3",
        nulls="divisor",
    ),
    declare_derived("MOD(a, b)", "the remainder, with the sign of a; NULL where b is 0", "MOD(-10, 3) → -1", "TRY_MOD"),
    declare_derived("PMOD(a, b)", "the remainder, not negative where b is positive", "PMOD(-10, 3) → 2"),
    declare_derived("TRY_ADD(a, b)", "the sum; NULL where integers have none in 64 bits", "TRY_ADD(1, 2) → 3"),
    declare_derived(
        "TRY_SUBTRACT(a, b)",
        "the difference; NULL where integers have none in 64 bits",
        "TRY_SUBTRACT(-9223372036854775807, 2) → NULL",
    ),
    declare_derived(
        "TRY_MULTIPLY(a, b)",
        "the product; NULL where integers have none in 64 bits",
        "TRY_MULTIPLY(9223372036854775807, 2) → NULL",
    ),
    declare_derived("TRY_DIVIDE(a, b)", "the quotient; NULL where b is 0", "TRY_DIVIDE(1, 0) → NULL", call="/"),
    native("SQRT(x)", real, "the square root; NaN of a negative number", "SQRT(9) → 3.0"),
    native("CBRT(x)", real, "the cube root", "ROUND(CBRT(27), 6) → 3.0"),
    native("POWER(x, y)", real, "x to the power of y", "POWER(2, 10) → 1024.0", "POW"),
    native("EXP(x)", real, "e to the power of x", "EXP(0) → 1.0"),
    native("LN(x)", real, "the natural logarithm; NULL unless x is positive", "LN(1) → 0.0", nulls="always"),
    native("LOG2(x)", real, "the logarithm to base 2; NULL unless x is positive", "LOG2(8) → 3.0", nulls="always"),
    native("LOG10(x)", real, "the logarithm to base 10; NULL unless x is positive", "LOG10(100) → 2.0", nulls="always"),
    declare_derived("LOG(x) or LOG(base, x)", "the natural logarithm, or that to a base", "ROUND(LOG(3, 9), 6) → 2.0"),
    declare_derived("LOG1P(x)", "the natural logarithm of 1 + x; NULL unless that is positive", "LOG1P(0) → 0.0"),
    _real("EXPM1(x)", "e to the power of x, less 1", "EXPM1(0) → 0.0"),
    _real("RINT(x)", "the whole number next to x, of two the even one", "RINT(2.5) → 2.0"),
    native(
        "FACTORIAL(n)", takes(BIGINT, WHOLE), "1 · 2 · … · n; NULL beyond 0 to 20", "FACTORIAL(5) → 120", nulls="always"
    ),
    declare_derived("PI()", "π", "ROUND(PI(), 4) → 3.1416"),
    declare_derived("E()", "Euler's number", "ROUND(E(), 4) → 2.7183"),
    _real("SIN(x)", "the sine of an angle in radians", "SIN(0) → 0.0"),
    _real("COS(x)", "the cosine of an angle in radians", "COS(0) → 1.0"),
    _real("TAN(x)", "the tangent of an angle in radians", "TAN(0) → 0.0"),
    declare_derived("SEC(x)", "the secant of an angle in radians", "SEC(0) → 1.0"),
    declare_derived("CSC(x)", "the cosecant of an angle in radians", "ROUND(CSC(PI() / 2), 6) → 1.0"),
    declare_derived("COT(x)", "the cotangent of an angle in radians", "ROUND(COT(PI() / 4), 6) → 1.0"),
    _real("ASIN(x)", "the angle in radians whose sine is x", "ASIN(0) → 0.0"),
    _real("ACOS(x)", "the angle in radians whose cosine is x", "ACOS(1) → 0.0"),
    _real("ATAN(x)", "the angle in radians whose tangent is x", "ATAN(0) → 0.0"),
    native("ATAN2(y, x)", real, "the angle in radians of the point (x, y)", "ATAN2(0, 1) → 0.0"),
    _real("SINH(x)", "the hyperbolic sine", "SINH(0) → 0.0"),
    _real("COSH(x)", "the hyperbolic cosine", "COSH(0) → 1.0"),
    _real("TANH(x)", "the hyperbolic tangent", "TANH(0) → 0.0"),
    _real("ASINH(x)", "the x whose hyperbolic sine is given", "ASINH(0) → 0.0"),
    _real("ACOSH(x)", "the x whose hyperbolic cosine is given", "ACOSH(1) → 0.0"),
    _real("ATANH(x)", "the x whose hyperbolic tangent is given", "ATANH(0) → 0.0"),
    _real("DEGREES(x)", "an angle of radians in degrees", "DEGREES(PI()) → 180.0"),
    _real("RADIANS(x)", "an angle of degrees in radians", "RADIANS(0) → 0.0"),
    native("HYPOT(x, y)", real, "the distance of (x, y) from (0, 0)", "HYPOT(3, 4) → 5.0"),
    native(
        "SHIFTLEFT(x, n)",
        bits,
        "the 64 bits of an integer moved up by n modulo 64 places",
        "SHIFTLEFT(1, 4) → 16",
        call="shift_left",
    ),
    native(
        "SHIFTRIGHT(x, n)",
        bits,
        "the 64 bits of an integer moved down by n modulo 64 places, keeping the sign",
        "SHIFTRIGHT(-16, 2) → -4",
        call="shift_right",
    ),
    native(
        "SHIFTRIGHTUNSIGNED(x, n)",
        bits,
        "the 64 bits of an integer moved down by n modulo 64 places, filled up with 0",
        "SHIFTRIGHTUNSIGNED(-1, 63) → 1",
        call="shift_right_unsigned",
    ),
    native("BIT_GET(x, n)", bits, "the bit at a place from 0 to 63, from the lowest", "BIT_GET(5, 2) → 1", "GETBIT"),
    native("BIT_COUNT(x)", bits, "how many of the 64 bits of an integer are 1", "BIT_COUNT(7) → 3"),
    declare_derived(
        "WIDTH_BUCKET(x, low, high, n)",
        "which of n equal parts of the range x is in, from 1; 0 before and n + 1 behind it",
        "WIDTH_BUCKET(5.5, 0, 10, 5) → 3",
    ),
)

INTERNAL = (
    Operation("log1p", 1, 1, real, "the natural logarithm of 1 + x"),
    Operation("floor", 1, 1, type_floor, "the greatest integer up to a number"),
    Operation("ceil", 1, 1, type_floor, "the least integer from a number on"),
    Operation(
        "round", 2, 2, type_round, "a DOUBLE to some digits, half away from zero, or an integer to tens", settings=1
    ),
    Operation("truncate", 2, 2, type_truncate, "a number cut to some digits after the point, or to tens", settings=1),
)
