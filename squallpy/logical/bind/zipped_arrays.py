"""Functions of several ARRAYs or MAPs at once, in terms of one ARRAY of STRUCTs, or one MAP of them.

ZIP_WITH(a, b, (x, y) -> x + y)   →   TRANSFORM(ARRAYS_ZIP(a, b), z -> z.x + z.y)
"""

import json
from collections.abc import Sequence

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import VARCHAR, Shape, nested_type
from squallpy.functions.registry import SCALARS
from squallpy.functions.scalar.nested import ZIPS
from squallpy.logical.bind.aggregates.calls import head
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.higher_order_functions import bind_body, check_parameters, transform
from squallpy.logical.bind.nested_values import as_held, field_of
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Cast, Expr, Literal

BOTH = ("first", "second")
NAMES = {name for function in ZIPS for name in function.names}


def bind_zip(s: Scalars, node: exp.Anonymous) -> Expr:
    """Bind ARRAYS_ZIP(a, b), ZIP_WITH(a, b, (x, y) -> …) or MAP_ZIP_WITH(m, n, (k, v, w) -> …)."""
    name = node.name.upper()
    if name == "ARRAYS_ZIP":
        values = [_nested(s, node, each, Shape.ARRAY) for each in node.expressions]
        names = [each.name if isinstance(each, exp.Column) else str(n) for n, each in enumerate(node.expressions)]
        if not values or len({each.lower() for each in names}) < len(names):
            raise SquallError("SQ2005", "ARRAYS_ZIP takes ARRAYs, of names that differ", head(s, node))
        return zip_arrays(values, names)
    *given, written = node.expressions or [node]
    if len(given) != 2 or [isinstance(each, exp.Lambda) for each in node.expressions] != [False, False, True]:
        raise SquallError("SQ2005", f"{name} is written {SCALARS[name].syntax}", head(s, node))
    shape = Shape.ARRAY if name == "ZIP_WITH" else Shape.MAP
    check_parameters(s, written, 2 if shape is Shape.ARRAY else 3, exactly=True)
    first, second = (_nested(s, node, each, shape) for each in given)
    zipped = zip_arrays((first, second), BOTH) if shape is Shape.ARRAY else _zip_maps(first, second)
    return _transform(s, written, zipped)


def _nested(s: Scalars, node: exp.Anonymous, written: exp.Expr, shape: Shape) -> Expr:
    value = s.bind(written)
    if value.type.nested is None or value.type.nested.shape is not shape:
        raise SquallError("SQ2005", f"{node.name.upper()} takes {shape.value}s, not {value.type}", head(s, node))
    return value


def zip_arrays(values: Sequence[Expr], names: Sequence[str]) -> Expr:
    """Build the ARRAY of STRUCTs of the elements of some ARRAYs at each position."""
    types = [value.type.nested.types[0] for value in values]  # type: ignore[union-attr]
    made = call("arrays_zip", Literal(json.dumps(names, ensure_ascii=False), VARCHAR), *map(as_held, values))
    return Cast(made, nested_type(Shape.ARRAY, (nested_type(Shape.STRUCT, types, names),)))


def _zip_maps(first: Expr, second: Expr) -> Expr:
    """Build the MAP of STRUCTs of the values that two MAPs have for each key; SQ2005 if keys are of two types."""
    (key, one), (other, two) = (value.type.nested.types for value in (first, second))  # type: ignore[union-attr]
    if key != other:
        raise SquallError("SQ2005", f"MAP_ZIP_WITH of MAPs with keys of {key} and {other}")
    of = nested_type(Shape.STRUCT, (one, two), BOTH)
    return Cast(call("maps_zip", as_held(first), as_held(second)), nested_type(Shape.MAP, (key, of)))


def _transform(s: Scalars, written: exp.Lambda, zipped: Expr) -> Expr:
    """Build what a lambda of a key, if there is one, and of both values makes of a zipped ARRAY or MAP."""
    assert zipped.type.nested is not None
    *keys, of = (s.ctx.column("part", type, True) for type in zipped.type.nested.types)
    read = [*keys, *(field_of(s, of, exp.to_identifier(name)) for name in BOTH)]
    named = {name.name.lower(): value for name, value in zip(written.expressions, read, strict=True)}
    operation = "map_transform_values" if keys else "array_transform"
    return transform(operation, zipped, (*keys, of), bind_body(s, written, named))
