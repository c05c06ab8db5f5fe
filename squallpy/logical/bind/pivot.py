"""PIVOT and UNPIVOT, as the queries that they stand for.

    r PIVOT (SUM(x) FOR k IN (1 AS one, 2))  →  SELECT a, SUM(x) FILTER (WHERE k = 1) AS one,
                                                SUM(x) FILTER (WHERE k = 2) AS `2` FROM r GROUP BY a
    r UNPIVOT (v FOR n IN (x, y))            →  SELECT a, 'x' AS n, x AS v FROM r WHERE x IS NOT NULL UNION ALL
                                                SELECT a, 'y' AS n, y AS v FROM r WHERE y IS NOT NULL

What neither names is carried along: `a`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product

from sqlglot import exp

from squallpy.base.records import dataclass
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.aggregates.collector import is_aggregate
from squallpy.logical.bind.context import Context

Names = Callable[[exp.Expr], Sequence[str]]  # a source → what its columns are called


def rewrite_pivots(ctx: Context, source: exp.Expr, names: Names) -> exp.Subquery:
    """Replace a source that has PIVOT or UNPIVOT by a query in FROM, under the same alias or one of its own."""
    first, *more = source.args["pivots"]
    bare = source.copy()
    bare.set("pivots", None)
    bare.parent = source.parent
    rotate = rewrite_unpivot if first.args.get("unpivot") else rewrite_pivot
    alias = first.args.get("alias") or bare.args.get("alias")
    if alias is None and isinstance(bare, exp.Table):
        alias = exp.TableAlias(this=bare.this.copy())
    found = exp.Subquery(this=rotate(ctx, first, bare, names(bare)), alias=alias and alias.copy())
    found.set("pivots", [pivot.copy() for pivot in more])
    found.parent = source.parent
    return rewrite_pivots(ctx, found, names) if more else found


def rewrite_pivot(ctx: Context, node: exp.Pivot, source: exp.Expr, names: Sequence[str]) -> exp.Query:
    ctx.refuse_other_args(
        node, "expressions", "fields", "group", "alias", "columns", "identify_pivot_strings", "prefixed_pivot_columns",
        "pivot_column_naming",
    )  # fmt: skip
    calls = [(each.this, each.alias) if isinstance(each, exp.Alias) else (each, "") for each in node.expressions]
    for call, _ in calls:
        if not any(is_aggregate(part) for part in call.walk()):
            raise ctx.error("SQ2009", "PIVOT needs an aggregate for each value", call)
    read = [c for call, _ in calls for c in call.find_all(exp.Column)]
    read += [c for field in node.args["fields"] for c in field.this.find_all(exp.Column)]
    group = node.args.get("group")
    grouping_columns = list_unread(names, read) if group is None else [each.copy() for each in group.expressions]
    items = [
        exp.alias_(of_rows(call, case.condition), "_".join((case.name, *named)), quoted=True)
        for case in cases(ctx, node.args["fields"])
        for call, alias in calls
        for named in [(alias or ctx.query.words(call),) if len(calls) > 1 else ()]
    ]
    by = exp.Group(expressions=[each.copy() for each in grouping_columns]) if grouping_columns else None
    return exp.Select(expressions=[*grouping_columns, *items], from_=exp.From(this=source), group=by)


@dataclass(frozen=True, slots=True)
class Case:
    """A value of PIVOT … FOR, or several: what its columns are called, and the rows that they are of."""

    name: str
    condition: exp.Expr


def cases(ctx: Context, fields: list[exp.In]) -> Iterator[Case]:
    """Yield the name and the condition of each column that PIVOT makes.

    FOR k IN (1, 2) FOR l IN ('a')  →  1_a: k = 1 AND l = 'a';  2_a: k = 2 AND l = 'a'
    """
    for field in fields:
        ctx.refuse_other_args(field, "this", "expressions")
    for chosen in product(*(field.expressions for field in fields)):
        names, tests = list[str](), list[exp.Expr]()
        for field, value in zip(fields, chosen, strict=True):
            bare = value.this if isinstance(value, exp.PivotAlias) else value
            if isinstance(bare, exp.Query):
                raise ctx.refuse(bare, QUERIES["values of a query"])
            parts = bare.expressions if isinstance(bare, exp.Tuple) else [bare]
            tested = field.this.expressions if isinstance(field.this, exp.Tuple) else [field.this]
            if len(parts) != len(tested):
                raise ctx.error("SQ2005", f"a row of {len(tested)} values with one of {len(parts)}", bare)
            names.append(value.alias or "_".join(name_of_value(ctx, part) for part in parts))
            tests += [test(column, part) for column, part in zip(tested, parts, strict=True)]
        yield Case("_".join(names), exp.and_(*tests, copy=False))


def test(column: exp.Expr, value: exp.Expr) -> exp.Expr:
    """Build the test of a column for a value: k = 1, k IS NULL"""
    return (exp.Is if isinstance(value, exp.Null) else exp.EQ)(this=column.copy(), expression=value.copy())


def name_of_value(ctx: Context, value: exp.Expr) -> str:
    """Name the column of a value."""
    return value.name if isinstance(value, exp.Literal) else ctx.query.words(value)


def of_rows(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """Filter the aggregates of an expression by a condition on rows."""

    def narrowed(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Filter):
            both = exp.And(this=node.expression.this.copy(), expression=condition.copy())
            return exp.Filter(this=node.this.copy(), expression=exp.Where(this=both))
        if is_aggregate(node):
            return exp.Filter(this=node.copy(), expression=exp.Where(this=condition.copy()))
        return node

    return call.transform(narrowed)


def rewrite_unpivot(ctx: Context, node: exp.Pivot, source: exp.Expr, names: Sequence[str]) -> exp.Query:
    ctx.refuse_other_args(node, "expressions", "fields", "unpivot", "include_nulls", "alias")
    (values,), (field,) = node.expressions, node.args["fields"]
    called = values.expressions if isinstance(values, exp.Tuple) else [values]
    grouping_columns = list_unread(names, field.find_all(exp.Column))
    queries: list[exp.Query] = []
    for each in field.expressions:
        bare = each.this if isinstance(each, exp.PivotAlias) else each
        read = bare.expressions if isinstance(bare, exp.Tuple) else [bare]
        if len(read) != len(called):
            raise ctx.error("SQ2005", f"{len(called)} names for {len(read)} column{'s' * (len(read) != 1)}", bare)
        for column in read:
            if not isinstance(column, exp.Column):
                raise ctx.error("SQ2005", "UNPIVOT takes columns", column)
        message = exp.Literal.string(each.alias or "_".join(column.name for column in read))
        shown = [exp.alias_(column.copy(), name.name, quoted=True) for column, name in zip(read, called, strict=True)]
        there: list[exp.Expr] = [exp.Not(this=exp.Is(this=c.copy(), expression=exp.Null())) for c in read]
        where = exp.Where(this=reduce(lambda a, b: exp.Or(this=a, expression=b), there))
        items = [*(c.copy() for c in grouping_columns), exp.alias_(message, field.this.name, quoted=True), *shown]
        rows = exp.From(this=source.copy())
        every = bool(node.args.get("include_nulls"))
        queries.append(exp.Select(expressions=items, from_=rows, where=None if every else where))
    return reduce(lambda a, b: exp.Union(this=a, expression=b, distinct=False), queries)


def list_unread(names: Sequence[str], read: Iterator[exp.Column] | Sequence[exp.Column]) -> list[exp.Expr]:
    """List the columns of a source that are not read."""
    known = {column.name.lower() for column in read}
    return [exp.column(exp.to_identifier(name, quoted=True)) for name in names if name.lower() not in known]
