"""Conditional functions, functions of NULL, and casts that are written as calls."""

from squallpy.functions.entries import declare_derived, native
from squallpy.functions.type_rules import extreme


def group_all(count: int) -> list[list[int]]:
    """Group all arguments as one type."""
    return [list(range(count))]


def group_all_but_first(count: int) -> list[list[int]]:
    return [list(range(1, count))]


def keys_and_values(count: int) -> list[list[int]]:
    """Group the arguments of DECODE(x, key, value, …, default): x with the keys; the values."""
    default = [count - 1] if count % 2 == 0 else []
    return [[0, *range(1, count - 1, 2)], [*range(2, count, 2), *default]]


FUNCTIONS = (
    declare_derived(
        "COALESCE(x, …)", "the first argument that is not NULL", "COALESCE(NULL, 2, 3) → 2", one_type=group_all
    ),
    declare_derived(
        "IFNULL(x, other)", "x, or other where x is NULL", "IFNULL(NULL, 0) → 0", "NVL", one_type=group_all
    ),
    declare_derived(
        "NVL2(x, a, b)", "a where x is not NULL, else b", "NVL2(1, 'a', 'b') → a", one_type=group_all_but_first
    ),
    declare_derived("NULLIF(x, other)", "x; NULL where it equals other", "NULLIF(3, 3) → NULL", one_type=group_all),
    declare_derived("NULLIFZERO(x)", "x; NULL where it is 0", "NULLIFZERO(0) → NULL"),
    declare_derived("ZEROIFNULL(x)", "x; 0 where it is NULL", "ZEROIFNULL(NULL) → 0"),
    declare_derived("ISNULL(x)", "TRUE if x is NULL", "ISNULL(NULL) → true", call="is_null"),
    declare_derived("ISNOTNULL(x)", "TRUE if x is not NULL", "ISNOTNULL(NULL) → false"),
    declare_derived(
        "EQUAL_NULL(a, b)",
        "TRUE if both are equal or both are NULL",
        "EQUAL_NULL(NULL, 1) → false",
        call="<=>",
        one_type=group_all,
    ),
    declare_derived("ISNAN(x)", "TRUE if x is NaN; FALSE of NULL", "ISNAN(DOUBLE('NaN')) → true"),
    declare_derived(
        "NANVL(x, other)", "x, or other where x is NaN", "NANVL(DOUBLE('NaN'), 0) → 0.0", one_type=group_all
    ),
    declare_derived(
        "IF(p, a, b)", "a where p is TRUE, else b", "IF(1 < 2, 'a', 'b') → a", "IFF IIF", one_type=group_all_but_first
    ),
    declare_derived(
        "DECODE(x, key, value, …)",
        "the value behind the first key that equals x, NULL being equal to NULL; else the last argument, or NULL",
        "DECODE(2, 1, 'a', 2, 'b', 'c') → b",
        one_type=keys_and_values,
    ),
    declare_derived(
        "ELT(n, a, …)",
        "the n-th of the other arguments; NULL if there is none",
        "ELT(2, 'a', 'b') → b",
        one_type=group_all_but_first,
    ),
    native(
        "GREATEST(a, b, …)",
        extreme,
        "the greatest argument; NULL only if all are",
        "GREATEST(1, NULL, 3) → 3",
        nulls="all",
        is_exactly_typed=True,
        one_type=group_all,
    ),
    native(
        "LEAST(a, b, …)",
        extreme,
        "the least argument; NULL only if all are",
        "LEAST(1, NULL, 3) → 1",
        nulls="all",
        is_exactly_typed=True,
        one_type=group_all,
    ),
    declare_derived("STRING(x)", "CAST(x AS VARCHAR)", "STRING(1.50) → 1.50"),
    declare_derived("INT(x)", "CAST(x AS INT)", "INT('7') → 7", "SMALLINT TINYINT"),
    declare_derived("BIGINT(x)", "CAST(x AS BIGINT)", "BIGINT(7.0) → 7"),
    declare_derived("DECIMAL(x)", "CAST(x AS DECIMAL(10,0))", "DECIMAL('7') → 7"),
    declare_derived("DOUBLE(x)", "CAST(x AS DOUBLE)", "DOUBLE(7) → 7.0", "FLOAT"),
    declare_derived("BOOLEAN(x)", "CAST(x AS BOOLEAN)", "BOOLEAN('true') → true"),
    declare_derived("DATE(x)", "CAST(x AS DATE)", "DATE('2026-01-31') → 2026-01-31"),
    declare_derived("TIMESTAMP(x)", "CAST(x AS TIMESTAMP)", "TIMESTAMP('2026-01-31 10:00:00') → 2026-01-31 10:00:00"),
)
