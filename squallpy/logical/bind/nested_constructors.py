"""ARRAYs, MAPs and STRUCTs that a query makes of values: texts of JSON, as those of sources are held.

    ARRAY(x, 1), [x, 1]                               →   '[' || x || ',' || 1 || ']', an ARRAY<INT>
    STRUCT(x, y AS b), ROW(x, y AS b), NAMED_STRUCT('x', x, 'b', y)   →   '{"x":' || … || ',"b":' || … || '}'
    MAP('k', x, 'l', y)                               →   '{"k":' || … || ',"l":' || … || '}'

A NULL in them is JSON's null, so none of them is NULL itself.
"""

import json
from collections.abc import Iterable, Sequence

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BOOLEAN, DOUBLE, NULL, VARCHAR, Shape, Type, nested_type, unify
from squallpy.frontend.dialect import is_call
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.coercion import NO_NUMBERS, coerce, coerce_exactly
from squallpy.logical.expression_builders import call, case, coalesce
from squallpy.logical.expressions import Cast, Expr, Literal


def items_of(node: exp.Expr | None) -> list[exp.Expr]:
    """List the items of ARRAY(x, y) or [x, y]; nothing for anything else."""
    if isinstance(node, exp.Array) or is_call(node, "ARRAY"):
        return list(node.expressions)
    return []


def fields_of(ctx: Context, node: exp.Expr) -> list[tuple[str, exp.Expr]]:
    """List the fields of STRUCT(x AS n, y) or NAMED_STRUCT('n', x, 'm', y), by the names that Spark gives them."""
    given = list(node.expressions)
    if not is_call(node, "NAMED_STRUCT"):
        named = (exp.Alias, exp.Column, exp.Dot)
        return [
            (each.alias_or_name if isinstance(each, named) else f"col{i}", each.unalias())
            for i, each in enumerate(given, 1)
        ]
    if len(given) % 2 or not all(isinstance(key, exp.Literal) and key.is_string for key in given[::2]):
        raise ctx.error("SQ2005", "NAMED_STRUCT takes names, as texts, and a value after each", node)
    return [(key.name, value) for key, value in zip(given[::2], given[1::2], strict=True)]


def entries_of(ctx: Context, node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]]:
    """List the entries of MAP(k, x, l, y), whose keys are constants that differ."""
    keys = node.expressions[::2]
    if len(node.expressions) % 2 or not keys:
        raise ctx.error("SQ2005", "MAP takes keys, and a value after each", node)
    known = {(key.is_string, key.name) for key in keys if isinstance(key, exp.Literal)}
    if len(known) < len(keys):
        raise ctx.refuse(node, QUERIES["MAP keys"])
    return list(zip(keys, node.expressions[1::2], strict=True))


def bind_constructor(s: Scalars, node: exp.Anonymous | exp.Array) -> Expr | None:
    """Bind a call that makes an ARRAY, a MAP or a STRUCT; None for any other."""
    if is_call(node, "STRUCT", "NAMED_STRUCT", "ROW"):
        return _struct(s, node)
    if is_call(node, "MAP"):
        return _map(s, node)
    if not (isinstance(node, exp.Array) or is_call(node, "ARRAY")):
        return None
    if not node.expressions:
        raise s.ctx.error("SQ2005", "an ARRAY of nothing has no type", node, "give it a value, or a NULL")
    values, type = _alike(s, node.expressions, "ARRAY")
    return _held("[", [("", json_of(value)) for value in values], "]", nested_type(Shape.ARRAY, (type,)))


def _struct(s: Scalars, node: exp.Expr) -> Expr:
    fields = fields_of(s.ctx, node)
    names = [name for name, _ in fields]
    if len({name.lower() for name in names}) < len(names) or not names:
        raise s.ctx.error("SQ2005", "a STRUCT has fields, of names that differ", node, "name them: STRUCT(x AS a)")
    values = [_typed(s.bind_value(value)) for _, value in fields]
    parts = [(f"{_quoted(name)}:", json_of(value)) for name, value in zip(names, values, strict=True)]
    return _held("{", parts, "}", nested_type(Shape.STRUCT, (value.type for value in values), names))


def _map(s: Scalars, node: exp.Expr) -> Expr:
    entries = entries_of(s.ctx, node)
    keys, key_type = _alike(s, [key for key, _ in entries], "MAP")
    values, value_type = _alike(s, [value for _, value in entries], "MAP")
    texts = (coerce(key, VARCHAR) for key in keys)
    names = [_quoted(str(text.value)) for text in texts if isinstance(text, Literal)]
    if len({*names}) < len(entries):  # 1 and 1.0 are alike
        raise s.ctx.refuse(node, QUERIES["MAP keys"])
    parts = [(f"{name}:", json_of(value)) for name, value in zip(names, values, strict=True)]
    return _held("{", parts, "}", nested_type(Shape.MAP, (key_type, value_type)))


def _alike(s: Scalars, nodes: Sequence[exp.Expr], made: str) -> tuple[list[Expr], Type]:
    """Bind values of a common type."""
    values, type = bind_alike(s, nodes)
    if type is None:
        types = " and ".join(dict.fromkeys(str(value.type) for value in values))
        raise SquallError("SQ2005", f"{made} of {types}, which have no common type", s.ctx.span(nodes[0]), "CAST one")
    return values, type


def bind_alike(s: Scalars, nodes: Sequence[exp.Expr]) -> tuple[list[Expr], Type | None]:
    """Bind values as they are, with None, or, if they have a common type, of that type; NULLs alone are VARCHAR."""
    values = s.as_one_type([s.bind_value(node) for node in nodes], list(nodes))
    type = unify([value.type for value in values])
    if type is None:
        return values, None
    type = VARCHAR if type == NULL else type
    return [coerce_exactly(value, type) for value in values], type


def _typed(value: Expr) -> Expr:
    return coerce(value, VARCHAR) if value.type == NULL else value


def _held(start: str, parts: Iterable[tuple[str, Expr]], end: str, type: Type) -> Expr:
    """Put texts between brackets, each behind its name."""
    text: Expr = Literal(start, VARCHAR)
    for i, (name, part) in enumerate(parts):
        if before := "," * bool(i) + name:
            text = call("||", text, Literal(before, VARCHAR))
        text = call("||", text, coalesce(part, Literal("null", VARCHAR)))
    return Cast(call("||", text, Literal(end, VARCHAR)), type)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def json_of(value: Expr) -> Expr:
    """Write a value as JSON, NULL as NULL; what is no number, NaN and infinities too, as a text."""
    text = coerce(value, VARCHAR)
    if value.type.nested or value.type.is_exact or value.type == BOOLEAN:
        return text
    if value.type != DOUBLE:
        return call("json_quoted", text)
    odd = [
        (call("=", text, Literal(each, VARCHAR)), Literal(f'"{name}"', VARCHAR)) for each, name in NO_NUMBERS.items()
    ]
    return case(list(odd), text)
