"""Operators, predicates, and the operations of plans that no query writes."""

from squallpy.functions.entries import Operation, operator
from squallpy.functions.type_rules import (
    accept_any,
    additive,
    as_texts,
    bits,
    booleans,
    checked_sum,
    comparable,
    mixed_moments,
    multiplicative,
    pattern,
    powers,
    quotient,
    remainder,
    rounded_decimals,
    single_value,
    type_in_list,
    type_of_first,
    type_signed,
)

OPERATORS = (
    operator(
        "a + b", Operation("+", 2, 2, additive, "the sum; BIGINT of integers, exact of DECIMALs"), "0.1 + 2 → 2.1"
    ),
    operator("a - b", Operation("-", 2, 2, additive, "the difference, typed as a sum"), "7 - 2.5 → 4.5"),
    operator(
        "a * b",
        Operation("*", 2, 2, multiplicative, "the product; digits of DECIMALs add up, to 38 at most"),
        "1.5 * 0.5 → 0.75",
    ),
    operator(
        "a / b",
        Operation("/", 2, 2, quotient, "the quotient, always DOUBLE; NULL where b is 0", "divisor"),
        "7 / 2 → 3.5",
    ),
    operator(
        "a % b",
        Operation("%", 2, 2, remainder, "the remainder, with the sign of a; NULL where b is 0", "divisor"),
        "-7 % 3 → -1",
    ),
    operator("-x", Operation("negate", 1, 1, type_signed, "the opposite; BIGINT of an INT"), "-(3) → -3"),
    operator("a & b", Operation("bit_and", 2, 2, bits, "the bits that both integers have"), "6 & 3 → 2"),
    operator("a | b", Operation("bit_or", 2, 2, bits, "the bits that either integer has"), "6 | 3 → 7"),
    operator("a ^ b", Operation("bit_xor", 2, 2, bits, "the bits that exactly one integer has"), "6 ^ 3 → 5"),
    operator("~x", Operation("bit_not", 1, 1, bits, "the bits that an integer of 64 bits does not have"), "~5 → -6"),
    operator(
        "a || b",
        Operation("||", 2, None, as_texts, "a text after another; other types as CAST writes them"),
        "'id ' || 7 → id 7",
    ),
    operator(
        "a = b", Operation("=", 2, 2, comparable, "TRUE if both are equal in their common type"), "1 = 1.0 → true"
    ),
    operator("a <> b", Operation("<>", 2, 2, comparable, "TRUE if they differ"), "1 <> 2 → true"),
    operator(
        "a <=> b",
        Operation("<=>", 2, 2, comparable, "TRUE if they are equal or both NULL; never NULL", "never"),
        "NULL <=> NULL → true",
    ),
    operator("a < b", Operation("<", 2, 2, comparable, "TRUE if a is less; texts by code points"), "'a' < 'b' → true"),
    operator("a <= b", Operation("<=", 2, 2, comparable, "TRUE if a is less or equal"), "2 <= 1 → false"),
    operator("a > b", Operation(">", 2, 2, comparable, "TRUE if a is greater"), "2 > 1 → true"),
    operator("a >= b", Operation(">=", 2, 2, comparable, "TRUE if a is greater or equal"), "1 >= 2 → false"),
    operator(
        "p AND q",
        Operation("and", 2, None, booleans, "three-valued AND: FALSE if one is FALSE, else NULL if one is"),
        "1 = 2 AND NULL → false",
    ),
    operator(
        "p OR q",
        Operation("or", 2, None, booleans, "three-valued OR: TRUE if one is TRUE, else NULL if one is"),
        "1 = 1 OR NULL → true",
    ),
    operator("NOT p", Operation("not", 1, 1, booleans, "three-valued NOT: NULL of NULL"), "NOT 1 = 2 → true"),
    operator(
        "x IS NULL",
        Operation("is_null", 1, 1, accept_any, "TRUE if x is NULL; never NULL", "never"),
        "1 IS NULL → false",
    ),
    operator(
        "x IN (a, …)",
        Operation(
            "in", 2, None, type_in_list, "TRUE if one of the constants equals x; NULL if none does and one is NULL"
        ),
        "2 IN (1, 2) → true",
    ),
    operator(
        "s LIKE p [ESCAPE e]",
        Operation("like", 2, 3, pattern, "TRUE if all of s matches; % is any text, _ any character", settings=1),
        "'abc' LIKE 'a%' → true",
    ),
    operator(
        "s SIMILAR TO p [ESCAPE e]",
        Operation("similar", 2, 3, pattern, "TRUE if all of s matches a regular expression of SQL", settings=1),
        "'abc' SIMILAR TO '(a|x)(b|c)+' → true",
    ),
)

INTERNAL = (
    Operation("total", 2, 2, rounded_decimals, "a sum of DECIMALs, rounded to 38 digits"),
    Operation("difference", 2, 2, rounded_decimals, "a difference of DECIMALs, rounded to 38 digits"),
    Operation("product", 2, 2, rounded_decimals, "a product of DECIMALs, rounded to 38 digits"),
    Operation("remainder", 2, 2, rounded_decimals, "%, of DECIMALs that have no scale in common", "divisor"),
    Operation("tried", 1, 1, type_of_first, "the value of a CAST; NULL where that would fail", "always"),
    Operation("checked", 2, 2, checked_sum, "an exact sum, if it is not far from the same sum of doubles"),
    Operation("only", 3, 3, single_value, "the value of a subquery, if it has one row"),
    Operation("product_rest", 2, 2, quotient, "what rounding took from a product of DOUBLEs"),
    Operation("covar_pop", 4, 8, mixed_moments, "covariance from COUNT(*), SUM(y), SUM(x), SUM(y * x)", "always"),
    Operation("covar_samp", 4, 8, mixed_moments, "covariance of a sample, from the same; NULL of one pair", "always"),
    Operation("var_pop", 4, 8, mixed_moments, "variance, the covariance of x and x", "always"),
    Operation("var_samp", 4, 8, mixed_moments, "variance of a sample, likewise; NULL of one value", "always"),
    Operation("skewness", 4, 4, powers, "skewness from COUNT(x) and the sums of x, x², x³", "always"),
    Operation("kurtosis", 5, 5, powers, "kurtosis from COUNT(x) and the sums of x, x², x³, x⁴", "always"),
)
