"""Functions of JSON in texts."""

from squallpy.base.errors import SquallError
from squallpy.base.types import VARCHAR, Shape, nested_type
from squallpy.logical.bind.scalar.expansion import expands
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Cast, Expr, Literal


@expands("GET_JSON_OBJECT")
def json_at(text: Expr, path: Expr) -> Expr:
    """Build GET_JSON_OBJECT(x, '$.a[0]')."""
    if not isinstance(path, Literal) or "*" in str(path.value):
        raise SquallError("SQ3001", "GET_JSON_OBJECT with * in its path, or a computed one, is not supported yet")
    return call("json_at", text, path)


@expands("JSON_OBJECT_KEYS")
def json_object_keys(text: Expr) -> Expr:
    return Cast(call("json_object_keys", text), nested_type(Shape.ARRAY, (VARCHAR,)))
