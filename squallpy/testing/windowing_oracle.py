"""Windowing table functions for the oracle: the windows of each time as a list, sessions numbered by LAG.

TABLE(HOP(TABLE r, DESCRIPTOR(at), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE))
→  (SELECT * EXCLUDE (…), make_timestamp(__start) AS window_start, make_timestamp(__start + 600000000) AS window_end, …
    FROM (SELECT *, UNNEST(range(…)) AS __start FROM (SELECT *, epoch_us(at) AS __at FROM r WHERE at IS NOT NULL)))
"""

from sqlglot import exp

from squallpy.logical.bind.windowing import OFFSET, PARAMETERS, is_windowing

MILLISECOND = 1_000


def replace_windowing(query: exp.Expr) -> None:
    """Replace the windowing table functions of a query by queries."""
    for table in reversed(list(query.find_all(exp.Table))):
        if is_windowing(table):
            made = exp.Subquery(this=exp.maybe_parse(_windows(table), dialect="duckdb"))
            if alias := table.args.get("alias"):
                made.set("alias", alias)
            table.replace(made)


def _windows(table: exp.Table) -> str:
    call = table.this
    name, given = call.name.upper(), dict[str, exp.Expr]()
    for key, argument in zip((*PARAMETERS[name], OFFSET), call.expressions, strict=False):
        named = isinstance(argument, exp.Kwarg)
        given[argument.this.name.lower() if named else key] = argument.expression if named else argument
    source, *keys = given.pop("data").expressions
    column = given.pop("timecol")
    at = (column.expressions[0] if isinstance(column, exp.Anonymous) else column).sql("duckdb")
    lengths = {key: _length(node) for key, node in given.items()}
    since, size = lengths.get(OFFSET, "0"), lengths.get("size", "0")
    made = f"(SELECT *, epoch_us({at}::TIMESTAMP) AS __at FROM {source.sql('duckdb')} WHERE {at} IS NOT NULL)"
    hidden = ""
    match name:
        case "SESSION":
            by = "".join(f"{key.sql('duckdb')}, " for key in keys)
            new = f"CASE WHEN __at - LAG(__at) OVER __by <= {lengths['gap']} THEN 0 ELSE 1 END AS __new"
            over = f"WINDOW __by AS (PARTITION BY {by}1 ORDER BY __at)"
            made = f"(SELECT *, SUM(__new) OVER __by AS __session FROM (SELECT *, {new} FROM {made} {over}) {over})"
            bounds = f"MIN(__at) OVER __all AS __start, MAX(__at) OVER __all + {lengths['gap']} AS __end"
            made = f"(SELECT *, {bounds} FROM {made} WINDOW __all AS (PARTITION BY {by}__session))"
            hidden = "__new, __session, "
        case "CUMULATE":
            first = _floor("__at", size, since)
            ends = f"UNNEST(range({first} + {lengths['step']}, {first} + {size} + 1, {lengths['step']}))"
            made = f"(SELECT * FROM (SELECT *, {first} AS __start, {ends} AS __end FROM {made}) WHERE __at < __end)"
        case _:
            slide = lengths.get("slide", size)
            first, last = _floor(f"(__at - {size})", slide, since), _floor("__at", slide, since)
            starts = f"UNNEST(range({first} + {slide}, {last} + 1, {slide})) AS __start"
            made = f"(SELECT *, __start + {size} AS __end FROM (SELECT *, {starts} FROM {made}))"
    windows = {"window_start": "__start", "window_end": "__end", "window_time": f"__end - {MILLISECOND}"}
    columns = ", ".join(f"make_timestamp({bound}) AS {name}" for name, bound in windows.items())
    return f"SELECT * EXCLUDE ({hidden}__at, __start, __end), {columns} FROM {made}"


def _floor(time: str, length: str, since: str) -> str:
    """Round times down; those of the tests are later than 1970."""
    return f"(({time} - {since}) // {length} * {length} + {since})"


def _length(node: exp.Expr) -> str:
    text = node if isinstance(node, exp.Interval) else exp.Interval(this=node.copy())
    return f"epoch_us(TIMESTAMP '1970-01-01' + {text.sql('duckdb')})"
