"""Functions of JSON in texts."""

from squallpy.base.types import VARCHAR
from squallpy.functions.entries import Operation, declare_derived
from squallpy.functions.type_rules import TEXT, takes

FUNCTIONS = (
    declare_derived(
        "GET_JSON_OBJECT(s, path)",
        "what stands at a constant path in JSON; NULL if there is nothing",
        """GET_JSON_OBJECT('{"a": [1, 2]}', '$.a[0]') → 1""",
        constant=1,
    ),
)

INTERNAL = (Operation("json_at", 2, 2, takes(VARCHAR, TEXT), "what stands at a path in JSON", "always", settings=1),)
