"""EXPLODE or UNNEST of columns of the query around, as the first source of FROM: a query over the elements of all rows.

    SELECT … FROM r WHERE EXISTS (SELECT 1 FROM UNNEST(r.tags) t(x) WHERE x = 'a')
    →  … FROM (SELECT x FROM (SELECT DISTINCT tags, pos, x FROM r LATERAL VIEW POSEXPLODE(tags) AS pos, x) e
               WHERE e.tags = r.tags) t WHERE x = 'a'

So an ARRAY is taken apart where its row is read, once for all rows that have it, and the rest is a correlated query.
"""

from sqlglot import exp

from squallpy.base.types import Shape
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.apply import Domain
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.listed_rows import listed_rows
from squallpy.logical.bind.ordinality import names_given, ordinality_of
from squallpy.logical.bind.scope import FromItem, Outer, Scope
from squallpy.logical.bind.sequence_functions import COLUMNS, is_series

VALUE, KEY, PART = "·value", "·key", "·part"
ROWS, VIEW, ELEMENTS = "·rows", "·view", "·elements"


def reads_beside(ctx: Context, node: exp.Expr, scope: Scope) -> bool:
    """True if all that a generator reads is of the sources before it."""
    return all(scope.has(ctx, column) for arg in _called(node).expressions for column in arg.find_all(exp.Column))


def is_listed(ctx: Context, node: exp.Expr) -> bool:
    """True if the rows of a generator are written out."""
    called = _called(node)
    return isinstance(called, exp.Subquery) or listed_rows(ctx, called) is not None


def lateral_unnest(ctx: Context, node: exp.Expr, scope: Scope) -> exp.Lateral:
    """Rewrite a generator that is joined by a condition, or reads columns around the query, as LATERAL (SELECT …)."""
    made = correlated_unnest(ctx, node, Outer(scope, Domain()))
    assert isinstance(made, exp.Subquery)
    return exp.Lateral(this=exp.Subquery(this=made.this), alias=made.args["alias"])


def correlated_unnest(ctx: Context, node: exp.Expr, outer: Outer) -> exp.Subquery | exp.Values:
    """Rewrite a generator in FROM that reads columns of the query around as a query; SQ3001 if there is none."""
    called = _called(node)
    if isinstance(called, exp.Subquery):
        return _named(called.this.copy(), node, ())
    if listed := listed_rows(ctx, called):
        ordinality = ordinality_of(node)[1]
        rows = [
            exp.Tuple(expressions=[*(value.copy() for value in row), *([exp.Literal.number(n)] if ordinality else [])])
            for n, row in enumerate(listed.rows, 1)
        ]
        return _named(exp.Values(expressions=rows), node, (*listed.names, *([ordinality] if ordinality else [])))
    name = "UNNEST" if called is node else called.name.upper()
    array = called if is_series(called) or not called.expressions else called.expressions[0]
    keeps_empty = name.endswith("OUTER") or bool(node.args.get("outer"))
    if keeps_empty or (len(called.expressions) != 1 and not is_series(called)):
        raise ctx.refuse(node, QUERIES["generator first"])
    item = _owner(ctx, array, outer.scope)
    if item is None or item.node is None:
        raise ctx.refuse(node, QUERIES["generator first"])
    nested = Scalars(ctx, outer.scope, "UNNEST").bind(array).type.nested
    if nested is None or nested.shape is Shape.STRUCT:
        raise ctx.refuse(array, QUERIES["EXPLODE"])
    is_map, has_position, ordinality = nested.shape is Shape.MAP, name.startswith("POS"), ordinality_of(node)[1]
    if is_map and ordinality:
        raise ctx.refuse(array, QUERIES["EXPLODE"])
    names = ("key", "value") if is_map else ("pos", "col") if has_position else (COLUMNS.get(name, "col"),)
    items: list[exp.Expr] = [_column(each) for each in ((KEY, PART) if len(names) > 1 else (PART,))]
    if ordinality:
        names, items = (*names, ordinality), [*items, exp.Add(this=_column(KEY), expression=exp.Literal.number(1))]
    return _named(exp.Subquery(this=_query(array, item.node, is_map, items)), node, names)


def _owner(ctx: Context, array: exp.Expr, scope: Scope) -> FromItem | None:
    """Find the source of a query around that all columns of an expression are of."""
    read = list(array.find_all(exp.Column))
    around: Scope | None = scope
    while around is not None and not all(around.has(ctx, column) for column in read):
        around = around.outer.scope if around.outer else None
    if around is None:
        return None
    found = {around.find_own_column(ctx, column).id for column in read}
    owners = [item for item in around.sources if found <= {c.id for c in item.columns}]
    return owners[0] if owners else None


def _query(array: exp.Expr, source: exp.Expr, is_map: bool, items: list[exp.Expr]) -> exp.Select:
    """Build the query of the elements of the row around: items made of their keys or positions, and of them."""
    rows = source.copy()
    rows.set("joins", None)
    value = exp.alias_(exp.Paren(this=array.copy()), VALUE, quoted=True)  # GENERATE_SERIES alone would make rows
    values = exp.Select(expressions=[value], from_=exp.From(this=rows))
    generator = exp.Anonymous(this="EXPLODE" if is_map else "POSEXPLODE", expressions=[_column(VALUE)])
    view = exp.Lateral(this=generator, view=True, alias=_alias(VIEW, (KEY, PART)))
    elements = exp.Select(
        expressions=[_column(name) for name in (VALUE, KEY, PART)],
        from_=exp.From(this=exp.Subquery(this=values, alias=_alias(ROWS))),
        laterals=[view],
        distinct=exp.Distinct(),
    )
    return exp.Select(
        expressions=items,
        from_=exp.From(this=exp.Subquery(this=elements, alias=_alias(ELEMENTS))),
        where=exp.Where(this=exp.EQ(this=_column(VALUE), expression=array.copy())),
    )


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _alias(name: str, columns: tuple[str, ...] = ()) -> exp.TableAlias:
    named = [exp.to_identifier(column, quoted=True) for column in columns]
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=named)


def _called(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node, exp.Unnest) else node.this


def _named(made: exp.Subquery | exp.Values, node: exp.Expr, names: tuple[str, ...]) -> exp.Subquery | exp.Values:
    """Name a source as the generator is named, with columns of its own unless others are given."""
    given, named = node.args.get("alias"), names_given(node) or names
    columns = [exp.to_identifier(name, quoted=True) for name in named]
    made.set("alias", exp.TableAlias(this=given.this if given else None, columns=columns))
    made.parent = node.parent
    return made
