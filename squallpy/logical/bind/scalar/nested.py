"""Functions of ARRAYs, MAPs and STRUCTs, in terms of operations on the texts that stand for them.

    ARRAY_POSITION(a, 2)   →   array_position(a, '2', 'INT')
    ARRAY_MAX(a)           →   CAST(array_extreme(a, 'n', 'greatest') AS INT)

Elements are compared as values of the type that an argument names.
"""

from squallpy.base.errors import SquallError
from squallpy.base.types import BOOLEAN, NULL, VARCHAR, Kind, Shape, Type, common, nested_type
from squallpy.frontend.schema_text import read_schema
from squallpy.logical.bind.nested_constructors import json_of
from squallpy.logical.bind.nested_values import as_held, element_of
from squallpy.logical.bind.scalar.expansion import Builder, expands
from squallpy.logical.coercion import cast, coerce, coerce_exactly
from squallpy.logical.expression_builders import call, case, coalesce
from squallpy.logical.expressions import Cast, Column, Expr, Lambda, Literal, not_null
from squallpy.logical.nested_order import order_code

JSON_NULL, COMMA, COLON = (Literal(text, VARCHAR) for text in ("null", ",", ":"))


def element_type(name: str, value: Expr, *others: Expr) -> Type:
    """Return the type of an ARRAY's elements; SQ2005 if the first argument of a call is none."""
    if value.type.nested is None or value.type.nested.shape is not Shape.ARRAY:
        raise _mismatch(name, value, *others)
    return value.type.nested.types[0]


def _map_types(name: str, value: Expr, *others: Expr) -> tuple[Type, Type]:
    if value.type.nested is None or value.type.nested.shape is not Shape.MAP:
        raise _mismatch(name, value, *others)
    key, of = value.type.nested.types
    return key, of


def _mismatch(name: str, *args: Expr, hint: str = "") -> SquallError:
    return SquallError("SQ2005", f"{name} does not take ({', '.join(str(arg.type) for arg in args)})", hint=hint)


def _named(type: Type) -> Expr:
    """Name the type by whose rules elements are compared."""
    return Literal("JSON" if type.nested else type.kind.value, VARCHAR)


def _ordered(name: str, value: Expr) -> Expr:
    """Name the order that an ARRAY's elements are in; SQ2005 if they have none."""
    if (code := order_code(element_type(name, value))) is None:
        raise _mismatch(name, value, hint="MAPs have no order")
    return Literal(code, VARCHAR)


def _comparable(name: str, value: Expr, sought: Expr) -> tuple[Expr, Type]:
    """Return a value that is looked for among elements, and the type in which they are compared, NULL for a NULL."""
    of = element_type(name, value, sought)
    if isinstance(sought, Literal) and sought.type == VARCHAR and of.is_temporal:
        sought = coerce(sought, of)
    type = common(of, sought.type)
    if type is None:
        raise _mismatch(name, value, sought, hint="CAST one side")
    return sought, NULL if sought.type == NULL else type


def _sought(name: str, value: Expr, sought: Expr) -> tuple[Expr, Expr]:
    """Return the text of a value that is looked for among elements, and the type in which they are compared."""
    sought, type = _comparable(name, value, sought)
    return json_of(sought) if type != NULL else Literal(None, VARCHAR), _named(type)


def _element(name: str, value: Expr, new: Expr) -> Expr:
    """Return the text of a value that becomes an element."""
    of = element_type(name, value, new)
    if common(of, new.type) != of:
        raise _mismatch(name, value, new, hint=f"CAST the value to {of}")
    return coalesce(json_of(coerce_exactly(new, of)), JSON_NULL) if new.type != NULL else JSON_NULL


def _alike(name: str, first: Expr, second: Expr) -> Expr:
    """Name the type of the elements of two ARRAYs, which is the same."""
    of = element_type(name, first, second)
    if second.type != first.type:
        raise _mismatch(name, first, second, hint="both are ARRAYs of one type")
    return _named(of)


@expands("SIZE")
def size(values: Expr) -> Expr:
    nested = values.type.nested
    if nested is None or nested.shape is Shape.STRUCT:
        raise _mismatch("SIZE", values)
    return call("nested_size", as_held(values))


@expands("ELEMENT_AT")
def element_at(values: Expr, at: Expr) -> Expr:
    return element_of(values, at, 1)


@expands("GET")
def element_from_zero(values: Expr, at: Expr) -> Expr:
    return element_of(values, at, 0)


@expands("ARRAY_CONTAINS")
def array_contains(values: Expr, value: Expr) -> Expr:
    """Build ARRAY_CONTAINS(a, y)  →  EXISTS(a, x -> x = y), which is NULL if y is"""
    value, type = _comparable("ARRAY_CONTAINS", values, value)
    if type == NULL:
        return Literal(None, BOOLEAN)
    x, y = Column(-1, "x", element_type("ARRAY_CONTAINS", values)), Column(-2, "y", value.type, value.nullable)
    found = call("array_exists", as_held(values), value, Lambda((x, y), call("=", x, y)))
    return case([(not_null(value), found)], Literal(None, BOOLEAN)) if value.nullable else found


@expands("ARRAY_POSITION")
def array_position(values: Expr, value: Expr) -> Expr:
    return call("array_position", as_held(values), *_sought("ARRAY_POSITION", values, value))


@expands("ARRAY_REMOVE")
def array_remove(values: Expr, value: Expr) -> Expr:
    return Cast(call("array_remove", as_held(values), *_sought("ARRAY_REMOVE", values, value)), values.type)


@expands("ARRAYS_OVERLAP")
def arrays_overlap(first: Expr, second: Expr) -> Expr:
    return call("arrays_overlap", as_held(first), as_held(second), _alike("ARRAYS_OVERLAP", first, second))


@expands("ARRAY_JOIN")
def array_join(values: Expr, separator: Expr, null: Expr | None = None) -> Expr:
    code = Literal(element_type("ARRAY_JOIN", values).code, VARCHAR)
    return call("array_join", as_held(values), code, separator, *([] if null is None else [null]))


def _extreme(name: str, which: str) -> Builder:
    def build(values: Expr) -> Expr:
        type, order = element_type(name, values), _ordered(name, values)
        found = call("array_extreme", as_held(values), order, Literal(which, VARCHAR))
        return found if type == VARCHAR else Cast(found, type)

    return build


expands("ARRAY_MIN")(_extreme("ARRAY_MIN", "least"))
expands("ARRAY_MAX")(_extreme("ARRAY_MAX", "greatest"))


@expands("ARRAY_DISTINCT")
def array_distinct(values: Expr) -> Expr:
    type = element_type("ARRAY_DISTINCT", values)
    return Cast(call("array_distinct", as_held(values), _named(type)), values.type)


@expands("SORT_ARRAY")
def sort_array(values: Expr, ascending: Expr | None = None) -> Expr:
    if ascending is not None and not (isinstance(ascending, Literal) and ascending.type.kind is Kind.BOOLEAN):
        raise _mismatch("SORT_ARRAY", values, ascending, hint="write TRUE or FALSE")
    way = "nulls first" if ascending is None or ascending.value else "descending"
    return _sorted("SORT_ARRAY", values, way)


@expands("ARRAY_SORT")
def array_sort(values: Expr) -> Expr:
    return _sorted("ARRAY_SORT", values, "nulls last")


def _sorted(name: str, values: Expr, way: str) -> Expr:
    return Cast(call("array_sorted", as_held(values), _ordered(name, values), Literal(way, VARCHAR)), values.type)


@expands("ARRAY_COMPACT")
def array_compact(values: Expr) -> Expr:
    element_type("ARRAY_COMPACT", values)
    return Cast(call("array_compact", as_held(values)), values.type)


def reversed_array(values: Expr) -> Expr:
    """Build REVERSE(a) of an ARRAY."""
    element_type("REVERSE", values)
    return Cast(call("array_reverse", as_held(values)), values.type)


@expands("ARRAY_APPEND")
def array_append(values: Expr, value: Expr) -> Expr:
    new = _element("ARRAY_APPEND", values, value)
    return Cast(call("array_concat", as_held(values), _of_one(new)), values.type)


@expands("ARRAY_PREPEND")
def array_prepend(values: Expr, value: Expr) -> Expr:
    new = _element("ARRAY_PREPEND", values, value)
    return Cast(call("array_concat", _of_one(new), as_held(values)), values.type)


def _of_one(element: Expr) -> Expr:
    return call("||", call("||", Literal("[", VARCHAR), element), Literal("]", VARCHAR))


def concatenated(first: Expr, *others: Expr) -> Expr:
    """Build CONCAT(a, b, …), or a || b, of ARRAYs."""
    for other in others:
        _alike("CONCAT", first, other)
        first = Cast(call("array_concat", as_held(first), as_held(other)), first.type)
    return first


def _set_operation(name: str) -> Builder:
    def build(first: Expr, second: Expr) -> Expr:
        made = call(name.lower(), as_held(first), as_held(second), _alike(name, first, second))
        return Cast(made, first.type)

    return build


for name in ("ARRAY_UNION", "ARRAY_INTERSECT", "ARRAY_EXCEPT"):
    expands(name)(_set_operation(name))


@expands("ARRAY_INSERT")
def array_insert(values: Expr, position: Expr, value: Expr) -> Expr:
    if isinstance(position, Literal) and position.value == 0:
        raise SquallError("SQ2004", "elements are counted from 1 on")
    return Cast(call("array_insert", as_held(values), position, _element("ARRAY_INSERT", values, value)), values.type)


@expands("MAP_FROM_ARRAYS")
def map_from_arrays(keys: Expr, values: Expr) -> Expr:
    types = (_key_type("MAP_FROM_ARRAYS", keys, values), element_type("MAP_FROM_ARRAYS", values))
    return Cast(call("map_from_arrays", as_held(keys), as_held(values)), nested_type(Shape.MAP, types))


@expands("MAP_FROM_ENTRIES")
def map_from_entries(entries: Expr) -> Expr:
    of = element_type("MAP_FROM_ENTRIES", entries).nested
    if of is None or of.shape is not Shape.STRUCT or len(of.types) != 2 or of.types[0].nested:
        raise _mismatch("MAP_FROM_ENTRIES", entries, hint="it takes an ARRAY of STRUCTs of a key and a value")
    return Cast(call("map_from_entries", as_held(entries)), nested_type(Shape.MAP, of.types))


def _key_type(name: str, keys: Expr, *others: Expr) -> Type:
    if (type := element_type(name, keys, *others)).nested:
        raise _mismatch(name, keys, *others, hint="a key is no ARRAY, MAP or STRUCT")
    return type


@expands("MAP_CONCAT")
def map_concat(first: Expr, *others: Expr) -> Expr:
    _map_types("MAP_CONCAT", first, *others)
    for other in others:
        if other.type != first.type:
            raise _mismatch("MAP_CONCAT", first, *others, hint="all are MAPs of one type")
        first = Cast(call("map_concat", as_held(first), as_held(other)), first.type)
    return first


@expands("STR_TO_MAP")
def text_to_map(text: Expr, pairs: Expr = COMMA, key: Expr = COLON) -> Expr:
    return Cast(call("str_to_map", text, pairs, key), nested_type(Shape.MAP, (VARCHAR, VARCHAR)))


@expands("SLICE")
def array_slice(values: Expr, start: Expr, length: Expr) -> Expr:
    element_type("SLICE", values, start, length)
    if isinstance(start, Literal) and start.value == 0:
        raise SquallError("SQ2004", "elements are counted from 1 on")
    return Cast(call("array_slice", as_held(values), start, length), values.type)


@expands("FLATTEN")
def flatten(values: Expr) -> Expr:
    inner = element_type("FLATTEN", values)
    if inner.nested is None or inner.nested.shape is not Shape.ARRAY:
        raise _mismatch("FLATTEN", values, hint="it takes an ARRAY of ARRAYs")
    return Cast(call("array_flatten", as_held(values)), inner)


@expands("ARRAY_REPEAT")
def array_repeat(value: Expr, count: Expr) -> Expr:
    value = coerce(value, VARCHAR) if value.type == NULL else value
    made = call("array_repeat", coalesce(json_of(value), JSON_NULL), count)
    return Cast(made, nested_type(Shape.ARRAY, (value.type,)))


@expands("MAP_KEYS")
def map_keys(values: Expr) -> Expr:
    key, _ = _map_types("MAP_KEYS", values)
    return Cast(call("map_keys", as_held(values), _named(key)), nested_type(Shape.ARRAY, (key,)))


@expands("MAP_VALUES")
def map_values(values: Expr) -> Expr:
    _, of = _map_types("MAP_VALUES", values)
    return Cast(call("map_values", as_held(values)), nested_type(Shape.ARRAY, (of,)))


@expands("MAP_CONTAINS_KEY")
def map_contains_key(values: Expr, key: Expr) -> Expr:
    of, _ = _map_types("MAP_CONTAINS_KEY", values, key)
    return call("map_contains_key", as_held(values), cast(cast(key, of), VARCHAR))


@expands("MAP_ENTRIES")
def map_entries(values: Expr) -> Expr:
    key, of = _map_types("MAP_ENTRIES", values)
    entry = nested_type(Shape.STRUCT, (key, of), ("key", "value"))
    return Cast(call("map_entries", as_held(values), _named(key)), nested_type(Shape.ARRAY, (entry,)))


@expands("TO_JSON")
def to_json(value: Expr) -> Expr:
    if value.type.nested is None and value.type.kind is not Kind.TIMESTAMP:
        return json_of(value)
    held = as_held(value) if value.type.nested else json_of(value)
    return call("to_json", held, Literal(_json_code(value.type), VARCHAR))


def _json_code(type: Type) -> str:
    """Return the shape of a type as its `code` does, with t for TIMESTAMPs, which JSON has with a T."""
    if type.nested is None:
        return "t" if type.kind is Kind.TIMESTAMP else "."
    parts = "".join(map(_json_code, type.nested.types[type.nested.shape is Shape.MAP :]))
    return {Shape.ARRAY: f"[{parts}", Shape.MAP: f"{{{parts}", Shape.STRUCT: f"({parts})"}[type.nested.shape]


@expands("FROM_JSON")
def from_json(text: Expr, schema: Expr) -> Expr:
    if not isinstance(schema, Literal) or schema.type != VARCHAR:
        raise _mismatch("FROM_JSON", text, schema, hint="the schema is a constant text")
    type = read_schema(str(schema.value))
    made = call("from_json", text, schema)
    return made if type == VARCHAR else Cast(made, type)
