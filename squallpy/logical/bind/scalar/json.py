"""Functions of JSON in texts."""

from squallpy.base.errors import SquallError
from squallpy.base.types import BOOLEAN, VARCHAR, Shape, nested_type
from squallpy.logical.bind.scalar.expansion import Builder, expands
from squallpy.logical.expression_builders import call, case
from squallpy.logical.expressions import Cast, Expr, Literal, is_null, not_null


def at_path(function: str, operation: str) -> Builder:
    """Return the builder of a function of what stands at a path."""

    def build(text: Expr, path: Expr) -> Expr:
        if not isinstance(path, Literal) or "*" in str(path.value):
            raise SquallError("SQ3001", f"{function} with * in its path, or a computed one, is not supported yet")
        return call(operation, text, path)

    return build


expands("GET_JSON_OBJECT")(at_path("GET_JSON_OBJECT", "json_at"))
expands("JSON_EXTRACT")(at_path("JSON_EXTRACT", "json_extract"))
expands("JSON_VALUE")(at_path("JSON_VALUE", "json_value"))
expands("JSON_QUERY")(at_path("JSON_QUERY", "json_query"))


@expands("JSON_EXISTS")
def json_exists(text: Expr, path: Expr) -> Expr:
    """Build JSON_EXISTS(x, '$.a'), FALSE of what is no JSON."""
    found = not_null(at_path("JSON_EXISTS", "json_exists")(text, path))
    return case([(is_null(text), Literal(None, BOOLEAN))], found) if text.nullable else found


@expands("JSON_OBJECT_KEYS")
def json_object_keys(text: Expr) -> Expr:
    return Cast(call("json_object_keys", text), nested_type(Shape.ARRAY, (VARCHAR,)))
