"""Session windows for the oracle: numbered from scratch, by LAG and a running sum over all rows of a block.

SELECT k, COUNT(*) FROM r GROUP BY k, SESSION_WINDOW(at, '5 minutes')
→  SELECT k, COUNT(*) FROM (SELECT *, SUM(__new) OVER (PARTITION BY k ORDER BY __at) AS __session FROM (
     SELECT *, CASE WHEN __at - LAG(__at) OVER (PARTITION BY k ORDER BY __at) <= 300000000 THEN 0 ELSE 1 END AS __new
     FROM (SELECT *, epoch_us(at) AS __at FROM r WHERE at IS NOT NULL))) GROUP BY k, __session

Columns of such a block lose the names of their relations, so no two may be called alike.
"""

from sqlglot import exp

from squallpy.logical.bind.time_buckets import BOUNDS, DAY, SESSION


def replace_sessions(query: exp.Expr) -> None:
    """Replace the session windows of all blocks of a query."""
    for block in list(query.find_all(exp.Select)):
        call = next((n for n in _own(block) if _is_call(n)), None)
        if call is not None:
            _replace(block, call)


def _is_call(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == SESSION


def _own(block: exp.Select) -> list[exp.Expr]:
    """List the nodes of a block, without those of queries inside."""
    return [n for n in block.walk(prune=lambda n: n is not block and isinstance(n, exp.Query)) if n is not block]


def _replace(block: exp.Select, call: exp.Expr) -> None:
    time, length = call.expressions
    count, unit = length.name.lower().removeprefix("interval ").split()
    gap = (
        int(count)
        * {"millisecond": 1_000, "second": 1_000_000, "minute": 60_000_000, "day": DAY}[unit.removesuffix("s")]
    )
    names = {SESSION, *(i.alias.lower() for i in block.expressions if _is_call(i.unalias()) and i.alias)}
    bounds = {"start": "MIN(__at)", "end": f"(MAX(__at) + {gap})"}
    group = block.args["group"]
    keys = [key for key in group.expressions if not (_is_call(key) or key.name.lower() in names)]
    by = "".join(f"{_bare(key).sql('duckdb')}, " for key in keys).removesuffix(", ")
    by = f"PARTITION BY {by} ORDER BY __at" if by else "ORDER BY __at"
    where = block.args.get("where")
    rows = exp.select("*", exp.alias_(_micros(time.copy()), "__at"))
    for part in ("from_", "joins", "laterals"):
        rows.set(part, block.args.get(part))
        block.set(part, None)
    rows.set("where", where and where.copy())
    rows.where(exp.Not(this=exp.Is(this=time.copy(), expression=exp.Null())), copy=False)
    new = f"CASE WHEN __at - LAG(__at) OVER ({by}) <= {gap} THEN 0 ELSE 1 END AS __new"
    numbered = exp.select("*", new, dialect="duckdb").from_(rows.subquery("__rows"))
    block.set("where", None)
    made = exp.select("*", f"SUM(__new) OVER ({by}) AS __session", dialect="duckdb")
    block.from_(made.from_(numbered.subquery("__new_ones")).subquery("__sessions"), copy=False)
    group.set("expressions", [*keys, exp.column("__session")])
    items = [item for each in block.expressions for item in _items(each, names)]
    block.set("expressions", items)
    for node in _own(block):
        table = node.table.lower() if isinstance(node, exp.Column) else ""
        of = isinstance(node, exp.Dot) and _is_call(node.this)
        if (table in names or of) and (bound := (node.expression if of else node).name.lower()) in BOUNDS:
            node.replace(exp.maybe_parse(f"make_timestamp({bounds[bound]})", dialect="duckdb"))
        elif table:
            node.replace(_bare(node))


def _items(item: exp.Expr, names: set[str]) -> list[exp.Expr]:
    """List the bounds for an item that is a session, or the item itself."""
    node = item.unalias()
    if _is_call(node) or (isinstance(node, exp.Column) and not node.table and node.name.lower() in names):
        title = item.alias or SESSION
        return [exp.alias_(exp.column(name, SESSION), f"{title}.{name}", quoted=True) for name in BOUNDS]
    if isinstance(node, exp.Column) and node.table.lower() in names and not item.alias:
        return [exp.alias_(item, node.name)]
    return [item]


def _bare(key: exp.Expr) -> exp.Expr:
    """Copy an expression whose columns lose the names of their relations."""
    return key.transform(lambda n: exp.column(n.this.copy()) if isinstance(n, exp.Column) and n.table else n)


def _micros(time: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="epoch_us", expressions=[exp.cast(time, "timestamp")])
