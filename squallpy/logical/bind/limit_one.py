"""The one value of the first row of a query, as a query that has no order.

    SELECT x FROM r ORDER BY k DESC LIMIT 1
    →  SELECT MIN(x) FROM (SELECT x, k FROM r) WHERE k <=> (SELECT MAX(k) FROM (SELECT x, k FROM r))

Of several keys each is the best among the rows that are best by those before it; keys after the value itself decide
nothing. SQL takes any of the rows that are alike in that order; here it is the one of the least value that is not
NULL. A later row than the first is the best of those that enough others come before, if the order is that of the value
itself:

    SELECT x FROM r ORDER BY x DESC LIMIT 1 OFFSET 2
    →  SELECT MAX(x) FROM r WHERE 2 < (SELECT COUNT(*) FROM r AS before WHERE before.x >= r.x)

Each key repeats the query for those before it, so that rows in an order of many are ranked instead:

    SELECT x FROM r ORDER BY a, b, c, d, e LIMIT 1
    →  SELECT MIN(x) FROM (SELECT x, RANK() OVER (ORDER BY a, b, c, d, e) AS place FROM r) WHERE place = 1
"""

from collections.abc import Sequence

from sqlglot import exp

# NB: what the query reads from around it is not called so
ROWS, BEFORE, VALUE, PLACE = "rows to choose from", "rows before", "value of a row", "place of a row"
MOST_KEYS = 4  # that are looked up one after the other


def first_value(query: exp.Expr) -> exp.Select | None:
    """The query without its ORDER BY, LIMIT 1 and OFFSET; None for any other."""
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if not isinstance(query, exp.Select) or not _takes_one(query) or len(query.expressions) != 1:
        return None
    order = query.args["order"].expressions
    value, name = query.expressions[0].unalias(), query.expressions[0].alias
    keys = [_key(key.this, value, name) for key in order]
    rows = query.copy()
    for part in ("order", "limit", "offset"):
        rows.set(part, None)
    columns = [exp.alias_(value.copy(), VALUE, quoted=True)]
    offset = query.args.get("offset")
    if offset and offset.expression.name != "0":
        rows.set("expressions", columns)
        return _later(rows, order[0], offset.expression) if keys[0] == value else None
    deciding = keys.index(value) if value in keys else len(keys)
    columns += [exp.alias_(key.copy(), f"key {number}", quoted=True) for number, key in enumerate(keys[:deciding])]
    rows.set("expressions", columns)
    chosen = exp.column(VALUE, ROWS, quoted=True)
    first = _best(order[deciding], chosen) if value in keys else _call("MIN", chosen)
    named = [(key, exp.column(f"key {number}", ROWS, quoted=True)) for number, key in enumerate(order[:deciding])]
    if deciding > MOST_KEYS:
        return _of(_ranked(rows, chosen, named), first, [exp.column(PLACE, ROWS, quoted=True).eq(1)])
    best: list[exp.Expr] = []
    for key, column in named:
        best.append(exp.NullSafeEQ(this=column, expression=_of(rows, _best(key, column), best).subquery()))
    return _of(rows, first, best)


def _takes_one(query: exp.Select) -> bool:
    limit = query.args.get("limit")
    count = limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression") if limit else None
    options = limit.args.get("limit_options") if limit else None
    if options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        return False
    return bool(limit and query.args.get("order")) and (count is None or count.name == "1")


def _later(rows: exp.Select, key: exp.Ordered, offset: exp.Expr) -> exp.Select:
    """The best value that more than `offset` rows are no worse than; NULL, where NULLs come first and are that many."""
    value, other = (exp.column(VALUE, name, quoted=True) for name in (ROWS, BEFORE))
    before: exp.Expr = (exp.GTE if key.args.get("desc") else exp.LTE)(this=other, expression=value)
    conditions = list[exp.Expr]()
    if key.args.get("nulls_first"):
        unknown: exp.Expr = exp.Is(this=other.copy(), expression=exp.Null())
        nulls = _of(rows, _call("COUNT", exp.Star()), [unknown], BEFORE).subquery()
        conditions.append(exp.LTE(this=nulls, expression=offset.copy()))
        before = exp.or_(before, unknown)
    enough = _of(rows, _call("COUNT", exp.Star()), [before], BEFORE).subquery()
    conditions.append(exp.GT(this=enough, expression=offset.copy()))
    return _of(rows, _call("MAX" if key.args.get("desc") else "MIN", value.copy()), conditions)


def _key(key: exp.Expr, value: exp.Expr, name: str) -> exp.Expr:
    """What a key of ORDER BY stands for: the select list's one item by position or name, or an expression."""
    is_position = isinstance(key, exp.Literal) and not key.is_string
    is_name = isinstance(key, exp.Column) and not key.table and bool(name) and key.name.lower() == name.lower()
    return value if is_position or is_name else key


def _ranked(rows: exp.Select, value: exp.Column, keys: list[tuple[exp.Ordered, exp.Column]]) -> exp.Select:
    """SELECT value, RANK() OVER (ORDER BY keys) AS place FROM (rows)"""
    order = [exp.Ordered(**{**key.args, "this": column}) for key, column in keys]
    rank = exp.Window(this=exp.Anonymous(this="RANK"), order=exp.Order(expressions=order))
    ranked = _of(rows, exp.alias_(value.copy(), VALUE, quoted=True))
    return ranked.select(exp.alias_(rank, PLACE, quoted=True))


def _best(key: exp.Ordered, column: exp.Column) -> exp.Expr:
    """The first value in an order: NULL, where NULLs come first and there is one."""
    value = _call("MAX" if key.args.get("desc") else "MIN", column.copy())
    if not key.args.get("nulls_first"):
        return value
    without = exp.EQ(this=_call("COUNT", exp.Star()), expression=_call("COUNT", column.copy()))
    return exp.Case(ifs=[exp.If(this=without, true=value)])


def _of(rows: exp.Select, value: exp.Expr, conditions: Sequence[exp.Expr] = (), name: str = ROWS) -> exp.Select:
    """SELECT value FROM (rows) AS name WHERE conditions"""
    named = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    source = exp.Subquery(this=rows.copy(), alias=named)
    query = exp.Select().select(value).from_(source)
    return query.where(*(condition.copy() for condition in conditions)) if conditions else query


def _call(name: str, arg: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[arg])
