"""Functions of JSON in texts."""

from squallpy.base.types import INT, VARCHAR
from squallpy.functions.entries import Operation, declare_derived, native
from squallpy.functions.type_rules import TEXT, takes

FUNCTIONS = (
    declare_derived(
        "GET_JSON_OBJECT(s, path)",
        "what stands at a constant path in JSON; NULL if there is nothing",
        """GET_JSON_OBJECT('{"a": [1, 2]}', '$.a[0]') → 1""",
        "JSON_EXTRACT_STRING",
        constant=1,
    ),
    declare_derived(
        "JSON_EXTRACT(s, path)",
        "what stands at a constant path in JSON, as JSON: a text in its quotes; NULL if there is nothing",
        """JSON_EXTRACT('{"a": ["b"]}', '$.a[0]') → "b\"""",
        constant=1,
    ),
    declare_derived(
        "JSON_VALUE(s, path)",
        "the text, number or truth value at a constant path in JSON, as a VARCHAR; NULL if there is none",
        """JSON_VALUE('{"a": {"b": 1}}', '$.a.b') → 1""",
        "JSON_EXTRACT_SCALAR",
        constant=1,
    ),
    declare_derived(
        "JSON_QUERY(s, path)",
        "the array or object at a constant path in JSON; NULL if there is none",
        """JSON_QUERY('{"a": [1, 2]}', '$.a') → [1,2]""",
        constant=1,
    ),
    declare_derived(
        "JSON_EXISTS(s, path)",
        "TRUE if something stands at a constant path in JSON, be it null",
        """JSON_EXISTS('{"a": null}', '$.a') → true""",
        constant=1,
    ),
    native(
        "JSON_ARRAY_LENGTH(s)",
        takes(INT, TEXT),
        "the number of elements of a JSON array; NULL of anything else",
        "JSON_ARRAY_LENGTH('[1, [2, 3]]') → 2",
        nulls="always",
    ),
    declare_derived(
        "JSON_OBJECT_KEYS(s)",
        "an ARRAY of the names in a JSON object; NULL of anything else",
        """JSON_OBJECT_KEYS('{"a": 1, "b": {}}') → [a, b]""",
    ),
)

INTERNAL = (
    Operation("json_object_keys", 1, 1, takes(VARCHAR, TEXT), "the names in a JSON object", "always"),
    Operation("json_at", 2, 2, takes(VARCHAR, TEXT), "what stands at a path in JSON", "always", settings=1),
    Operation("json_extract", 2, 2, takes(VARCHAR, TEXT), "JSON at a path in JSON", "always", settings=1),
    Operation("json_value", 2, 2, takes(VARCHAR, TEXT), "a scalar at a path in JSON", "always", settings=1),
    Operation("json_query", 2, 2, takes(VARCHAR, TEXT), "an array or object at a path in JSON", "always", settings=1),
    Operation("json_exists", 2, 2, takes(VARCHAR, TEXT), "'1' if there is something at a path", "always", settings=1),
    Operation(
        "nested_at",
        3,
        3,
        takes(VARCHAR, TEXT),
        "an element by position, a value by key or a field",
        "always",
        settings=1,
    ),
    Operation("json_quoted", 1, 1, takes(VARCHAR, TEXT), "a text in the quotes and escapes of JSON"),
    Operation("nested_size", 1, 1, takes(INT, TEXT), "the number of elements"),
    Operation("nested_text", 2, 2, takes(VARCHAR, TEXT), "an ARRAY, MAP or STRUCT as CAST writes it", settings=1),
)
