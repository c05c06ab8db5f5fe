"""Binding of table functions over a join: cofactor, ols.

cofactor(TABLE(SELECT x, y FROM fact NATURAL JOIN dim))   →   Factorised(Filter(x, y NOT NULL, Join(…)), x, y)
"""

from collections.abc import Collection
from itertools import count
from math import comb, inf

from sqlglot import exp

from squallpy.base.errors import nearest
from squallpy.base.rings import Cofactor
from squallpy.base.rings.cofactor import MOST_DEGREE
from squallpy.base.types import Kind
from squallpy.catalog.variable_orders import OrderText
from squallpy.functions.model_functions import (
    CATEGORICAL,
    CHOLESKY,
    FUNCTIONS,
    SOLVERS,
    LeastSquares,
    Model,
    Statistics,
    degree_of,
    name_monomials,
)
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.equi_joins import check_equi_join, refuse_clauses
from squallpy.logical.bind.literals import read_number, read_text
from squallpy.logical.bind.table_arguments import TableArguments
from squallpy.logical.expressions import Column, conjunction, not_null
from squallpy.logical.factorised import Factorised
from squallpy.logical.nodes import Filter

MOST_FEATURES = 1_000
CATEGORIES = (Kind.INT, Kind.BIGINT, Kind.VARCHAR, Kind.DATE, Kind.BOOLEAN)


def is_factorised(node: exp.Expr) -> bool:
    """True if a source in FROM is a table function over a join."""
    return isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and node.this.name.lower() in FUNCTIONS


def bind_factorised(ctx: Context, node: exp.Table) -> Factorised:
    """Bind a call of a table function over a join."""
    from squallpy.logical.bind.from_clause import bind_nested

    name = node.this.name.lower()
    table, *_ = node.this.expressions or [None]
    is_table = isinstance(table, exp.Anonymous) and table.name.upper() == "TABLE" and len(table.expressions) == 1
    query = table.expressions[0] if is_table else None
    if isinstance(query, exp.Column):
        query = exp.select(exp.Star()).from_(exp.Table(this=query.this.copy(), db=query.args.get("table")))
        query.parent = table
    if not isinstance(query, exp.Select):
        hint = f"write {name}(TABLE(SELECT x, y FROM r JOIN s USING (k)))"
        raise ctx.error("SQ2005", f"{name} reads columns of a join", node.this, hint)
    refuse_clauses(ctx, name, query)
    child = bind_nested(ctx, query)
    arguments = TableArguments(ctx.error, node.this)
    items = query.expressions if len(query.expressions) == len(child.output) and not query.is_star else []
    places: dict[Column, exp.Expr] = dict.fromkeys(child.output, query) | dict(zip(child.output, items, strict=False))
    keys = _partition(ctx, name, query, places, arguments.named("partition"))
    order = _order(ctx, arguments.named("order"))
    # NB: a text column of a table that is read by its name is not listed by anybody
    is_left_out = name == "ols" and is_table and isinstance(table.expressions[0], exp.Column)
    listed = (column for column in child.output if not is_left_out or column.type.is_numeric)
    features = tuple(column for column in listed if column not in keys)
    _check_features(ctx, name, features, places, query)
    check_equi_join(ctx, name, child, features, places)
    model = _model(ctx, node.this, arguments, features)
    _check_names(ctx, name, model, features, places)
    _check_size(ctx, name, degree_of(model), len(features), query)
    nullable = [not_null(c) for c in features if c.nullable]
    rows = Filter(child, conjunction(nullable)) if nullable else child
    columns = tuple(ctx.column(title, type, False) for title, type in model.columns)
    return Factorised(rows, model, features, keys, columns, tuple(c.name for c in features), order)


def _check_features(
    ctx: Context, name: str, features: tuple[Column, ...], places: dict[Column, exp.Expr], query: exp.Expr
) -> None:
    """Refuse columns of the wrong type, two of one name, too many of them or none."""
    seen, of_categories = dict[str, Column](), FUNCTIONS[name] in CATEGORICAL
    for column in features:
        if not (column.type.kind in CATEGORIES if of_categories else column.type.is_numeric):
            told = f'{name} is of {"categories" if of_categories else "numbers"}, "{column.name}" is {column.type}'
            hint = "round it to an integer, or leave it out" if of_categories else "leave it out of the SELECT list"
            raise ctx.error("SQ2002", told, places[column], hint)
        if seen.setdefault(column.name.lower(), column) is not column:
            raise ctx.error("SQ2005", f'{name} lists the column "{column.name}" twice', places[column], "list it once")
    if of_categories and len(features) == 1:
        raise ctx.error("SQ2005", f"{name} is of pairs of columns, it lists one", query, "list two columns or more")
    if not features:
        raise ctx.error("SQ2005", f"{name} lists no column but those of PARTITION BY", query, "list columns of numbers")


def _check_names(
    ctx: Context, name: str, model: Model, features: tuple[Column, ...], places: dict[Column, exp.Expr]
) -> None:
    """Refuse a column that is called as a product of columns, or the intercept, is."""
    names = [c.name for c in features]
    taken = {*(name_monomials(names, degree_of(model))[len(names) :] if degree_of(model) > 1 else ())}
    taken |= {"intercept"} if isinstance(model, LeastSquares) and model.intercept else set()
    for column in features:
        if column.name in taken and not (isinstance(model, LeastSquares) and features[model.label] is column):
            told = f'{name} would have two features "{column.name}"'
            raise ctx.error("SQ2007", told, places[column], "rename the column")


def _check_size(ctx: Context, name: str, degree: int, columns: int, query: exp.Expr) -> None:
    """Refuse too many features, which are columns, and products of up to `degree` of them."""

    def count_features(columns: int) -> int:
        return comb(columns + degree, degree) - 1

    if count_features(columns) > MOST_FEATURES:
        words, to_degree = Cofactor(0, columns, degree=degree).words, f" to degree {degree}" if degree > 1 else ""
        most = next(n for n in count() if count_features(n + 1) > MOST_FEATURES)
        told = f"{name} of {columns:,} columns{to_degree} would take {words:,} numbers for each key"
        raise ctx.error("SQ3001", told, query, f"list at most {most:,} columns")


def _partition(
    ctx: Context, name: str, query: exp.Select, places: dict[Column, exp.Expr], keys: exp.Expr | None
) -> tuple[Column, ...]:
    """Find the columns of PARTITION BY among those of TABLE(…), of which each stands at its place in `query`."""
    listed = keys.expressions if isinstance(keys, exp.Tuple) else [keys.this] if isinstance(keys, exp.Paren) else [keys]
    relations = {source.alias_or_name.lower() for source in query.find_all(exp.Table, exp.Subquery)}
    found = list[Column]()
    for key in filter(None, listed):
        named = [c for c in places if isinstance(key, exp.Column) and _is_named(c, places[c], key, relations)]
        if not named:
            hint = nearest(key.name, [c.name for c in places])
            told = f"TABLE(…) of {name} does not select {key.sql('spark')}, by which it is partitioned"
            raise ctx.error("SQ2003", told, key, hint)
        if len(named) > 1:
            raise ctx.error("SQ2002", f'ambiguous column "{key.name}" in PARTITION BY', key, "rename one with AS")
        found += named
    return tuple(dict.fromkeys(found))


def _is_named(column: Column, place: exp.Expr, key: exp.Column, relations: Collection[str]) -> bool:
    """True if a name is that of a column, and its relation, if it has one, may be the column's."""
    item = place.unalias()
    of = item.table.lower() if isinstance(item, exp.Column) else ""
    return column.name.lower() == key.name.lower() and (
        not key.table or (key.table.lower() in relations and of in ("", key.table.lower()))
    )


def _order(ctx: Context, name: exp.Expr | None) -> OrderText | None:
    """Look up a declared variable order."""
    if name is None:
        return None
    text = read_text(name)
    order = next((o for o in ctx.catalog.orders.values() if o.name.lower() == text.lower()), None)
    if order is None:
        hint = nearest(text, ctx.catalog.orders) or "declare it by CREATE VARIABLE ORDER name AS $$ … $$"
        raise ctx.error("SQ2001", f"unknown variable order {name.sql('spark')}", name, hint)
    return order


def _model(ctx: Context, call: exp.Expr, arguments: TableArguments, features: tuple[Column, ...]) -> Model:
    """Read the arguments of the model that is called."""
    kind = FUNCTIONS[call.name.lower()]
    if issubclass(kind, LeastSquares):
        return _least_squares(ctx, call, arguments, features)
    if issubclass(kind, Statistics):
        return _statistics(ctx, arguments)
    arguments.done()
    return kind()


def _statistics(ctx: Context, arguments: TableArguments) -> Statistics:
    argument = arguments.named("degree")
    arguments.done("degree", "order")
    degree = 1 if argument is None else read_number(argument)
    if argument is not None and degree not in range(1, MOST_DEGREE + 1):
        told = f"a degree of {argument.sql('spark')}"
        raise ctx.error("SQ2012", told, argument, f"it is a number from 1 to {MOST_DEGREE}")
    return Statistics(int(degree or 1))


def _least_squares(ctx: Context, call: exp.Expr, arguments: TableArguments, features: tuple[Column, ...]) -> Model:
    label = arguments.take("label")
    intercept, ridge, solver = (arguments.take(name) for name in ("intercept", "ridge", "solver"))
    arguments.done("label", "intercept", "ridge", "solver")
    names = [c.name for c in features]
    wanted = arguments.read_label(label, names)
    place = next((i for i, name in enumerate(names) if name.lower() == wanted.lower()), None)
    if place is None:
        raise ctx.error("SQ2003", f'TABLE(…) has no column "{wanted}" for ols', label or call, nearest(wanted, names))
    with_one = arguments.read_flag("intercept", intercept)
    if len(features) == 1 and not with_one:
        raise ctx.error("SQ2005", f'TABLE(…) has no column but "{names[0]}" for ols', call, "list what explains it")
    return LeastSquares(place, with_one, _ridge(ctx, ridge), _solver(ctx, solver))


def _solver(ctx: Context, argument: exp.Expr | None) -> str:
    if argument is None:
        return CHOLESKY
    if (name := read_text(argument).lower()) not in SOLVERS:
        raise ctx.error("SQ2012", f"ols has no solver {argument.sql('spark')}", argument, nearest(name, SOLVERS))
    return name


def _ridge(ctx: Context, argument: exp.Expr | None) -> float | None:
    if argument is None:
        return None
    number = read_number(argument)
    if number is None or number == inf:
        raise ctx.error("SQ2012", f"a ridge of {argument.sql('spark')}", argument, "it is a number from 0 on")
    return number
