"""Parts of ARRAYs, MAPs and STRUCTs: a.b, a[0], m['k'], ELEMENT_AT(a, 1) and SIZE(a).

a STRUCT<b: INT>:  a.b   →   CAST(nested_at(a, 'b') AS INT)        a ARRAY<STRUCT<b: INT>>:  a.b   →   an ARRAY<INT>
"""

from sqlglot import exp

from squallpy.base.errors import SquallError, nearest
from squallpy.base.types import VARCHAR, Shape, Type, nested_type
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.nested_constructors import json_of
from squallpy.logical.coercion import cast
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import Cast, Column, Expr, Lambda, Literal


def as_held(value: Expr) -> Expr:
    """Take the text that stands for a nested value."""
    return Cast(value, VARCHAR)


def field_of(s: Scalars, value: Expr, name: exp.Expr) -> Expr:
    """Bind a field of a STRUCT, SQ2003 if it has none of that name, or m.k of a MAP, the value of its key 'k'."""
    nested = value.type.nested
    if nested is not None and nested.shape is Shape.ARRAY and nested.types[0].nested:
        return _fields_of_elements(s, value, name, nested.types[0])
    if nested is not None and nested.shape is Shape.MAP:
        return element_of(value, Literal(name.name, VARCHAR), 0)
    if nested is None or nested.shape is not Shape.STRUCT:
        raise s.ctx.error("SQ2005", f"{_subject(value)} is {value.type} and has no fields", name)
    if (found := nested.field(name.name)) is None:
        message = f'{_subject(value)} has no field "{name.name}"'
        raise s.ctx.error("SQ2003", message, name, nearest(name.name, nested.names))
    return _part(value, Literal(found[0], VARCHAR), "{", found[1])


def _fields_of_elements(s: Scalars, value: Expr, name: exp.Expr, type: Type) -> Expr:
    """Build the ARRAY of a field of each element: q.d  →  TRANSFORM(q, x -> x.d)"""
    element = Column(-1, "element", type)
    field = field_of(s, element, name)
    part = coalesce(json_of(field), Literal("null", VARCHAR))
    made = call("array_transform", as_held(value), Lambda((element,), part))
    return Cast(made, nested_type(Shape.ARRAY, (field.type,)))


def item_at(s: Scalars, value: Expr, at: exp.Expr) -> Expr:
    """Bind an item in brackets: a[0], m['k'], and of a STRUCT s['a'], which is s.a."""
    nested = value.type.nested
    if nested is not None and nested.shape is Shape.STRUCT and at.is_string:
        return field_of(s, value, at)
    return element_of(value, s.bind(at), 0)


def element_of(value: Expr, at: Expr, first: int) -> Expr:
    """Build an element of an ARRAY, or the value of a key of a MAP; NULL if there is none.

    Args:
        first: The number of the first element.
    """
    nested = value.type.nested
    if nested is None or nested.shape is Shape.STRUCT:
        raise SquallError("SQ2005", f"{_subject(value)} is {value.type} and has no elements")
    if nested.shape is Shape.MAP:
        key, type = nested.types
        return _part(value, cast(cast(at, key), VARCHAR), "{", type)
    if not at.type.is_integer:
        raise SquallError("SQ2005", f"an ARRAY is read at an INT, not at {at.type}")
    if first and isinstance(at, Literal) and at.value == 0:
        raise SquallError("SQ2004", "elements are counted from 1 on")
    return _part(value, cast(at, VARCHAR), "]" if first else "[", nested.types[0])


def _subject(value: Expr) -> str:
    """Name a value in messages, what is computed as such."""
    return str(value) if isinstance(value, Column) else "this value"


def _part(value: Expr, step: Expr, way: str, type: Type) -> Expr:
    found = call("nested_at", as_held(value), step, Literal(way, VARCHAR))
    return found if type == VARCHAR else Cast(found, type)


def text_of(value: Expr) -> Expr:
    """Bind CAST(value AS VARCHAR)."""
    return call("nested_text", as_held(value), Literal(value.type.code, VARCHAR))


def column_of_struct(s: Scalars, node: exp.Column) -> Expr | None:
    """Bind r.a.b or a.b where a is a column that is a STRUCT; None if there is no such column."""
    parts = [part for key in ("catalog", "db", "table", "this") if (part := node.args.get(key)) is not None]
    for count in (1, 2):  # names that are those of the column
        if count >= len(parts):
            continue
        named = exp.Column(**dict(zip(("this", "table"), reversed(parts[:count]), strict=False)))
        try:
            value = s.scope.resolve(s.ctx, named)
        except SquallError:
            continue
        if _has_fields(value.type):
            for part in parts[count:]:
                value = field_of(s, value, part)
            return value
    return None


def _has_fields(type: Type) -> bool:
    """True if it is a STRUCT, a MAP, or an ARRAY of them."""
    nested = type.nested
    if nested is not None and nested.shape is Shape.ARRAY:
        return _has_fields(nested.types[0])
    return nested is not None and nested.shape is not Shape.ARRAY
