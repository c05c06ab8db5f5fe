"""Functions that a script declares: bound once as formulas of their parameters, which their calls replace by arguments.

CREATE FUNCTION net(gross DOUBLE, rate DOUBLE) RETURNS DOUBLE RETURN gross / (1 + rate);
net(price, 0.19)   →   price / (1 + 0.19e0)
"""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from squallpy.base.errors import SquallError, counted
from squallpy.base.types import NULL, VARCHAR, Type, common
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.functions import DefinedFunction
from squallpy.frontend.query import parse_select, tables_read
from squallpy.frontend.source_text import ScriptText
from squallpy.frontend.statements import Body, CreateFunction
from squallpy.frontend.unsupported import QUERIES
from squallpy.functions.registry import AGGREGATES, OPERATIONS, SCALARS, WINDOWS
from squallpy.logical.bind.aggregates.calls import head
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.python_functions import bind_python
from squallpy.logical.bind.scope import FromItem, Scope
from squallpy.logical.coercion import cast, coerce_exactly
from squallpy.logical.constant_folding import Evaluate
from squallpy.logical.expressions import Call, Column, Expr, Literal, Rewriter, is_nullable


def define(catalog: Catalog, created: CreateFunction, evaluate: Evaluate) -> DefinedFunction:
    """Bind the formula of a function; SQ2007 for a name that SQL has, SQ2005 for a value of another type."""
    if not is_free(created.name):
        raise SquallError("SQ2007", f"{created.name.upper()} is a word of SQL", created.span, "take another name")
    names = [name.lower() for name, _ in created.parameters]
    for name, span in zip(names, created.spans, strict=True):
        if names.count(name) > 1:
            raise SquallError("SQ2007", f'a parameter "{name}" is named twice', span)
    ids = catalog.spare
    parameters = tuple(Column(next(ids), name, type, True) for name, type in created.parameters)
    if isinstance(created.returned, Body):
        call = bind_python(created, created.returned, parameters)
        return DefinedFunction(created.name, parameters, created.returns, call, span=created.span)
    ctx = Context(catalog, created.returned, evaluate=evaluate).rehearsal()
    formula, reads = _bind_formula(ctx, created, parameters), frozenset(tables_read(created.returned))
    return DefinedFunction(created.name, parameters, created.returns, formula, reads, created.span)


def _bind_formula(ctx: Context, created: CreateFunction, parameters: tuple[Column, ...]) -> Expr:
    node = ctx.query.ast.expressions[0]
    if query := next(node.find_all(exp.Query), None):
        raise ctx.refuse(query, QUERIES["function"])
    s = Scalars(ctx, Scope([FromItem(created.name, parameters)]), "the formula of a function")
    returned = s.bind(node)
    body = fitted(s, returned, created.returns, node)
    if body is None:
        told = f"{created.name} returns {created.returns}, this is {returned.type}"
        raise ctx.error("SQ2005", told, node, "CAST it")
    return body


def is_free(name: str) -> bool:
    """True if SQL has no function and no syntax of a name, so that a call of it is one of what a script declares."""
    if name.upper() in (*SCALARS, *AGGREGATES, *WINDOWS):
        return False
    try:
        written = f"SELECT {name}(1, 1)"
        called = parse_select(ScriptText(written, ""), 0, len(written)).ast.expressions[0]
    except SquallError:
        return False
    return isinstance(called, exp.Anonymous) and called.name == name


def call_defined(s: Scalars, function: DefinedFunction, node: exp.Anonymous) -> Expr:
    """Replace the parameters of a function by the arguments of a call; SQ2005 for arguments that do not fit."""
    given = dict[int, Expr]()
    for parameter, written in zip(function.parameters, _in_order(s, function, node), strict=True):
        value = s.bind(written)
        argument = fitted(s, value, parameter.type, written)
        if argument is None:
            told = f"{parameter.name} of {function.called} is {parameter.type}, not {value.type}"
            raise s.ctx.error("SQ2005", told, written, "CAST it")
        given[parameter.id] = argument
    body: Expr = function.body
    return with_values(body, given)


def with_values(body: Expr, given: Mapping[int, Expr]) -> Expr:
    """Replace parameters by arguments, and take back that a call may be NULL where it cannot be of these."""

    def replaced(part: Expr) -> Expr | None:
        match part:
            case Column(id):
                return given.get(id)
            case Call(name, args, _, True) if not is_nullable(OPERATIONS[name], args):
                return replace(part, nullable=False)
        return None

    return Rewriter(replaced)(body)


def _in_order(s: Scalars, function: DefinedFunction, node: exp.Anonymous) -> list[exp.Expr]:
    """List the arguments of a call by parameter, those that are named behind the others: net(price, rate => 0.19)"""
    if len(node.expressions) != len(function.parameters):
        takes = counted(len(function.parameters), "argument", "arguments")
        told = f"{function.called} takes {takes}, not {len(node.expressions)}"
        raise SquallError("SQ2005", told, head(s, node), function.declaration)
    names = [parameter.name.lower() for parameter in function.parameters]
    placed, is_named = dict[str, exp.Expr](), False
    for name, written in zip(names, node.expressions, strict=True):
        if is_named and not isinstance(written, exp.Kwarg):
            raise s.ctx.error("SQ2005", "an argument without a name stands behind one with a name", written)
        is_named = isinstance(written, exp.Kwarg)
        given = written.this.name.lower() if is_named else name
        if given not in names:
            raise s.ctx.error("SQ2005", f"{function.called} has no {given}", written, function.declaration)
        if given in placed:
            raise s.ctx.error("SQ2005", f"{given} of {function.called} is given twice", written)
        placed[given] = written.expression if is_named else written
    return [placed[name] for name in names]


def fitted(s: Scalars, value: Expr, type: Type, node: exp.Expr) -> Expr | None:
    """Convert a value to the type of a parameter or result; None if it is none of it without a CAST.

    2 as DOUBLE  →  2e0        '2026-11-30' as DATE  →  DATE '2026-11-30'        2.5 as INT  →  None
    """
    text = s.ctx.fold(value) if value.type == VARCHAR and not type.nested else value
    if isinstance(text, Literal) and text.type == VARCHAR:
        with s.ctx.at(node):
            return cast(text, type)
    keeps = type.is_numeric and value.type.is_numeric and not _drops_digits(value.type, type)
    return coerce_exactly(value, type) if keeps or common(value.type, type) == type or value.type == NULL else None


def _drops_digits(source: Type, target: Type) -> bool:
    """True if numbers of a type may have more digits behind the point than those of another, which is exact."""
    return target.is_exact and (not source.is_exact or source.scale > target.scale)
