"""Functions of ARRAYs, MAPs and STRUCTs, beside their parts (`a[i]`, `m['k']`, `s.field`) and EXPLODE.

Elements are equal as the values of their type are: numbers by value, NaN to itself, nested ones if all of their parts
are. A function of a NULL is NULL.
"""

from squallpy.base.types import BIGINT, BOOLEAN, VARCHAR, Type
from squallpy.functions.entries import Function, Operation, TypeRule, declare_derived
from squallpy.functions.type_rules import TEXT, WHOLE, takes, types


def over_elements(result: Type | None) -> TypeRule:
    """Make a rule for a nested value, what is passed, and a lambda, whose type is the result's if none is given."""
    return lambda name, args: (types(args), result or args[-1].type)


def _higher_order(syntax: str, call: str, result: Type | None, doc: str, example: str, aliases: str = "") -> Function:
    names = (syntax[: syntax.index("(")], *aliases.split())
    operation = Operation(call, 2, None, over_elements(result), doc, "always")
    return Function(syntax, doc, example, names, 2, None, call, operation)


HIGHER_ORDER = (
    _higher_order(
        "TRANSFORM(a, x -> y)",
        "array_transform",
        VARCHAR,
        "an ARRAY of what a lambda makes of each element, or of it and its position from 0 on: (x, i) -> y",
        "TRANSFORM(ARRAY(1, 2), (x, i) -> x * 10 + i) → [10, 21]",
        "LIST_TRANSFORM LIST_APPLY",
    ),
    _higher_order(
        "FILTER(a, x -> p)",
        "array_filter",
        VARCHAR,
        "the elements for which a condition is TRUE, also of their positions from 0 on: (x, i) -> p",
        "FILTER(ARRAY(1, 2, 3), x -> x <> 2) → [1, 3]",
        "LIST_FILTER",
    ),
    _higher_order(
        "EXISTS(a, x -> p)",
        "array_exists",
        BOOLEAN,
        "TRUE if a condition is for an element; NULL if it is for none, but NULL for one",
        "EXISTS(ARRAY(1, 2), x -> x > 1) → true",
        "ANY_MATCH",
    ),
    _higher_order(
        "FORALL(a, x -> p)",
        "array_forall",
        BOOLEAN,
        "FALSE if a condition is for an element; NULL if it is for none, but NULL for one",
        "FORALL(ARRAY(1, 2), x -> x > 1) → false",
        "ALL_MATCH",
    ),
    _higher_order(
        "AGGREGATE(a, start, (acc, x) -> y [, acc -> z])",
        "array_fold",
        None,
        "what a lambda makes of start and the first element, of that and the second one …; at the end, what another "
        "makes of it",
        "AGGREGATE(ARRAY(1, 2, 3), 0, (acc, x) -> acc + x, acc -> acc * 10) → 60",
        "REDUCE",
    ),
    _higher_order(
        "MAP_FILTER(m, (k, v) -> p)",
        "map_filter",
        VARCHAR,
        "the entries for which a condition is TRUE",
        "MAP_FILTER(MAP('a', 1, 'b', 2), (k, v) -> v > 1) → {b -> 2}",
    ),
    _higher_order(
        "TRANSFORM_VALUES(m, (k, v) -> y)",
        "map_transform_values",
        VARCHAR,
        "a MAP with what a lambda makes of each key and its value",
        "TRANSFORM_VALUES(MAP('a', 1), (k, v) -> k || v) → {a -> a1}",
    ),
    _higher_order(
        "TRANSFORM_KEYS(m, (k, v) -> y)",
        "map_transform_keys",
        VARCHAR,
        "a MAP with what a lambda makes of each key and its value as the keys",
        "TRANSFORM_KEYS(MAP('a', 1), (k, v) -> k || v) → {a1 -> 1}",
    ),
)
"""Functions of a lambda over one ARRAY or MAP."""

ZIPS = (
    declare_derived(
        "ZIP_WITH(a, b, (x, y) -> z)",
        "an ARRAY of what a lambda makes of the elements of two at each position, NULL behind the end of one",
        "ZIP_WITH(ARRAY(1, 2), ARRAY(10, 20), (x, y) -> x + y) → [11, 22]",
        call="array_transform",
    ),
    declare_derived(
        "MAP_ZIP_WITH(m, n, (k, v, w) -> y)",
        "a MAP of what a lambda makes of each key and its value in two, NULL where one has none",
        "MAP_ZIP_WITH(MAP('a', 1), MAP('a', 2, 'b', 3), (k, v, w) -> w - v) → {a -> 1, b -> null}",
        call="map_transform_values",
    ),
    declare_derived(
        "ARRAYS_ZIP(a, b, …)",
        "an ARRAY of STRUCTs of the elements at each position, with the names of columns, or 0, 1 …",
        "ARRAYS_ZIP(ARRAY(1, 2), ARRAY('a', 'b')) → [{1, a}, {2, b}]",
        call="arrays_zip",
    ),
)
"""Functions of several ARRAYs or MAPs at once."""

FUNCTIONS = (
    declare_derived(
        "SIZE(a)",
        "the number of elements or entries",
        "SIZE(ARRAY(1, NULL)) → 2",
        "ARRAY_SIZE CARDINALITY ARRAY_LENGTH",
    ),
    declare_derived(
        "ELEMENT_AT(a, i)",
        "the element at a position from 1 on, or by −1, −2 … from the end, or the value of a key; NULL for none",
        "ELEMENT_AT(ARRAY('a', 'b'), -1) → b",
        "TRY_ELEMENT_AT",
    ),
    declare_derived("GET(a, i)", "the element at a position from 0 on, as a[i]", "GET(ARRAY('a', 'b'), 1) → b"),
    declare_derived(
        "ARRAY_CONTAINS(a, x)",
        "TRUE if an element is x; NULL if none is and one is NULL",
        "ARRAY_CONTAINS(ARRAY(1, 2), 2) → true",
        "ARRAY_HAS LIST_CONTAINS LIST_HAS",
    ),
    declare_derived(
        "ARRAY_POSITION(a, x)",
        "the number of the first element that is x, from 1 on, or 0",
        "ARRAY_POSITION(ARRAY('a', 'b'), 'b') → 2",
    ),
    declare_derived(
        "ARRAYS_OVERLAP(a, b)",
        "TRUE if both have an element; NULL if not, but one is NULL and neither is empty",
        "ARRAYS_OVERLAP(ARRAY(1, 2), ARRAY(2, 3)) → true",
    ),
    declare_derived(
        "ARRAY_JOIN(a, separator [, null])",
        "the texts of all elements with a separator between them, without NULLs, or with a text for them",
        "ARRAY_JOIN(ARRAY('a', NULL, 'b'), '-', '?') → a-?-b",
        "ARRAY_TO_STRING",
    ),
    declare_derived("ARRAY_MIN(a)", "the least element", "ARRAY_MIN(ARRAY(3, 1, NULL)) → 1", "LIST_MIN"),
    declare_derived("ARRAY_MAX(a)", "the greatest element", "ARRAY_MAX(ARRAY(3, 1, NULL)) → 3", "LIST_MAX"),
    declare_derived(
        "ARRAY_DISTINCT(a)", "each element once, where it comes first", "ARRAY_DISTINCT(ARRAY(2, 1, 2)) → [2, 1]"
    ),
    declare_derived(
        "SORT_ARRAY(a [, ascending])",
        "the elements in their order, NULLs first, or in the opposite one",
        "SORT_ARRAY(ARRAY(2, NULL, 1), FALSE) → [2, 1, null]",
        constant=1,
    ),
    declare_derived(
        "ARRAY_SORT(a [, (x, y) -> n])",
        "the elements in their order, NULLs last, or as a lambda says: below 0 where x comes before y, above it behind",
        "ARRAY_SORT(ARRAY('bb', 'a', 'ccc'), (x, y) -> LENGTH(y) - LENGTH(x)) → [ccc, bb, a]",
    ),
    declare_derived("ARRAY_COMPACT(a)", "the elements but NULLs", "ARRAY_COMPACT(ARRAY(1, NULL)) → [1]"),
    declare_derived("ARRAY_REMOVE(a, x)", "the elements that are not x", "ARRAY_REMOVE(ARRAY(1, 2, 1), 1) → [2]"),
    declare_derived(
        "ARRAY_APPEND(a, x)", "the elements, and x behind them", "ARRAY_APPEND(ARRAY(1), 2) → [1, 2]", "LIST_APPEND"
    ),
    declare_derived("ARRAY_PREPEND(a, x)", "x, and the elements behind it", "ARRAY_PREPEND(ARRAY(1), 2) → [2, 1]"),
    declare_derived(
        "ARRAY_UNION(a, b)", "the elements of both, each once", "ARRAY_UNION(ARRAY(1, 2), ARRAY(2, 3)) → [1, 2, 3]"
    ),
    declare_derived(
        "ARRAY_INTERSECT(a, b)",
        "the elements of a that b has, too, each once",
        "ARRAY_INTERSECT(ARRAY(1, 2), ARRAY(2, 3)) → [2]",
    ),
    declare_derived(
        "ARRAY_EXCEPT(a, b)",
        "the elements of a that b has not, each once",
        "ARRAY_EXCEPT(ARRAY(1, 2), ARRAY(2, 3)) → [1]",
    ),
    declare_derived(
        "SLICE(a, start, length)",
        "so many elements from a position on; a negative start counts from the end",
        "SLICE(ARRAY(1, 2, 3), 2, 5) → [2, 3]",
    ),
    declare_derived(
        "FLATTEN(a)",
        "the elements of the elements; NULL if an element is",
        "FLATTEN(ARRAY(ARRAY(1), ARRAY(2))) → [1, 2]",
    ),
    declare_derived("ARRAY_REPEAT(x, n)", "an ARRAY that has x n times", "ARRAY_REPEAT('a', 2) → [a, a]"),
    declare_derived(
        "ARRAY_INSERT(a, position, x)",
        "the elements with x at a position from 1 on, or from the end by −1, −2 …; NULLs fill what is between",
        "ARRAY_INSERT(ARRAY(1, 3), 2, 2) → [1, 2, 3]",
    ),
    declare_derived(
        "MAP_FROM_ARRAYS(keys, values)",
        "a MAP of the elements of two ARRAYs of one length",
        "MAP_FROM_ARRAYS(ARRAY('a', 'b'), ARRAY(1, 2)) → {a -> 1, b -> 2}",
    ),
    declare_derived(
        "MAP_FROM_ENTRIES(a)",
        "a MAP of an ARRAY of STRUCTs of a key and a value; NULL if one is NULL",
        "MAP_FROM_ENTRIES(ARRAY(STRUCT('a', 1))) → {a -> 1}",
    ),
    declare_derived(
        "MAP_CONCAT(m, …)", "the entries of all MAPs", "MAP_CONCAT(MAP('a', 1), MAP('b', 2)) → {a -> 1, b -> 2}"
    ),
    declare_derived(
        "STR_TO_MAP(s [, pairs [, key]])",
        "a MAP of the entries in a text, with commas between them, or matches of a pattern, and a colon in each, or a "
        "match of another",
        "STR_TO_MAP('a:1,b:2') → {a -> 1, b -> 2}",
    ),
    declare_derived("MAP_KEYS(m)", "an ARRAY of the keys", "MAP_KEYS(MAP('a', 1)) → [a]"),
    declare_derived("MAP_VALUES(m)", "an ARRAY of the values", "MAP_VALUES(MAP('a', 1)) → [1]"),
    declare_derived("MAP_CONTAINS_KEY(m, k)", "TRUE if a key is k", "MAP_CONTAINS_KEY(MAP('a', 1), 'b') → false"),
    declare_derived(
        "MAP_ENTRIES(m)", "an ARRAY of the entries, STRUCT(key, value)", "MAP_ENTRIES(MAP('a', 1)) → [{a, 1}]"
    ),
    declare_derived(
        "TO_JSON(x)",
        "the JSON of a value; a STRUCT without fields that are NULL",
        """TO_JSON(STRUCT(1 AS a, NULL AS b)) → {"a":1}""",
    ),
    declare_derived(
        "FROM_JSON(s, schema)",
        "JSON as an ARRAY or MAP, NULL if it is none, or as a STRUCT of columns, NULL where it has none",
        """FROM_JSON('{"a": [1, 2], "b": {}}', 'a ARRAY<INT>, b INT') → {[1, 2], null}""",
        constant=1,
    ),
    *HIGHER_ORDER,
    *ZIPS,
)

OF_ARRAYS: dict[str, tuple[Type, int, str]] = {
    "array_position": (BIGINT, 3, "the number of an element in an ARRAY"),
    "arrays_overlap": (BOOLEAN, 3, "whether two ARRAYs have a common element"),
    "array_extreme": (VARCHAR, 3, "the least or the greatest element of an ARRAY"),
    "array_distinct": (VARCHAR, 2, "an ARRAY with each element once"),
    "array_sorted": (VARCHAR, 3, "an ARRAY in order"),
    "array_compact": (VARCHAR, 1, "an ARRAY without NULLs"),
    "array_reverse": (VARCHAR, 1, "an ARRAY in reverse order"),
    "array_remove": (VARCHAR, 3, "an ARRAY without an element"),
    "array_concat": (VARCHAR, 2, "an ARRAY behind another"),
    "array_union": (VARCHAR, 3, "the elements of two ARRAYs, each once"),
    "array_intersect": (VARCHAR, 3, "the elements that two ARRAYs have, each once"),
    "array_except": (VARCHAR, 3, "the elements of an ARRAY that another has not, each once"),
    "map_from_arrays": (VARCHAR, 2, "a MAP of two ARRAYs, of its keys and its values"),
    "map_from_entries": (VARCHAR, 1, "a MAP of an ARRAY of its entries"),
    "map_concat": (VARCHAR, 2, "the entries of two MAPs"),
    "maps_zip": (VARCHAR, 2, "a MAP of the values that two MAPs have for each key"),
    "array_flatten": (VARCHAR, 1, "the elements of the elements of an ARRAY"),
    "map_keys": (VARCHAR, 2, "the keys of a MAP"),
    "map_values": (VARCHAR, 1, "the values of a MAP"),
    "map_contains_key": (BOOLEAN, 2, "whether a MAP has a key"),
    "map_entries": (VARCHAR, 2, "the entries of a MAP"),
}
"""Operations of the texts that stand for nested values: the type of the result, and the number of arguments."""

INTERNAL = (
    *(
        Operation(name, count, count, takes(result, TEXT), doc, "always")
        for name, (result, count, doc) in OF_ARRAYS.items()
    ),
    Operation("array_join", 3, 4, takes(VARCHAR, TEXT), "the texts of the elements of an ARRAY"),
    Operation("to_json", 2, 2, takes(VARCHAR, TEXT), "a nested value without fields that are NULL", settings=1),
    Operation("from_json", 2, 2, takes(VARCHAR, TEXT), "JSON as a value of a schema", "always", settings=1),
    Operation("arrays_zip", 1, None, takes(VARCHAR, TEXT), "an ARRAY of the elements of several at each position"),
    Operation("array_insert", 3, 3, takes(VARCHAR, TEXT, WHOLE, TEXT), "an ARRAY with an element more"),
    Operation("str_to_map", 3, 3, takes(VARCHAR, TEXT), "the entries in a text as a MAP"),
    Operation("array_sorted_by", 2, None, over_elements(VARCHAR), "an ARRAY in the order of a lambda", "always"),
    Operation("order_text", 2, 2, takes(VARCHAR, TEXT), "a text in the order of ARRAYs or STRUCTs"),
    Operation("order_with_value", 2, 2, takes(VARCHAR, TEXT), "a text in the order of a value, and the value"),
    Operation("value_in_order", 1, 1, takes(VARCHAR, TEXT), "the value of such a text"),
    Operation("array_slice", 3, 3, takes(VARCHAR, TEXT, WHOLE), "a part of an ARRAY"),
    Operation("array_repeat", 2, 2, takes(VARCHAR, TEXT, WHOLE), "an ARRAY of one value several times"),
)
