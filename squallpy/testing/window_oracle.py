"""Windows for the oracle: from the whole prefix of each stream, by DuckDB's own arithmetic, nothing incremental.

SELECT COUNT(*) FROM bids RANGE 5 SEC    →    SELECT COUNT(*) FROM "bids in 1"
bids in 1 := the log of bids WHERE epoch_us(ts) > (SELECT MAX(epoch_us(ts)) FROM the log) - 5000000
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import count

from sqlglot import exp

from squallpy.catalog.relation import TRUNCATED, Relation
from squallpy.catalog.window_spec import SessionExtent
from squallpy.frontend.source_text import ScriptText
from squallpy.frontend.window_clause import CLAUSE, Clause, read_window

_numbers = count(1)


def replace_windows(
    query: exp.Expr, relations: Mapping[str, Relation], views: Mapping[str, str], parse: Callable[[str], exp.Expr]
) -> Iterator[tuple[str, str]]:
    """Replace the streams that a query reads under windows by views; yield the names and texts of these."""
    inline_views(query, views, parse)
    streams = {name.lower(): r for name, r in relations.items() if r.stream}
    under: dict[int, tuple[exp.Expr, list[exp.Table]]] = {}
    for table in query.find_all(exp.Table):
        block = _find_windowed_block(table)
        if block is not None and table.name.lower() in streams:
            under.setdefault(id(block), (block, []))[1].append(table)
    for block, tables in under.values():
        number, text = next(_numbers), block.args[CLAUSE].name
        clause = read_window(ScriptText(text, "oracle"), 0, len(text))
        mine = {table.name.lower(): streams[table.name.lower()] for table in tables}
        for relation in mine.values():
            yield f"{relation.name} in {number}", _select_rows(relation, list(mine.values()), clause)
        for table in tables:
            relation = mine[table.name.lower()]
            shown = exp.to_table(f'"{relation.name} in {number}"', alias=table.alias or relation.name)
            shown.set("pivots", table.args.get("pivots"))
            table.replace(shown)
    for block in list(query.find_all(exp.Select)):
        block.set(CLAUSE, None)


def inline_views(query: exp.Expr, views: Mapping[str, str], parse: Callable[[str], exp.Expr]) -> None:
    """Replace the views that a query reads under windows by subqueries."""
    texts = {name.lower(): text for name, text in views.items()}
    for table in list(query.find_all(exp.Table)):
        if table.name.lower() in texts and _find_windowed_block(table) is not None:
            inside = parse(texts[table.name.lower()])
            table.replace(exp.Subquery(this=inside, alias=exp.TableAlias(this=exp.to_identifier(table.alias_or_name))))
            inline_views(inside, views, parse)


def _find_windowed_block(node: exp.Expr) -> exp.Expr | None:
    """Find the nearest enclosing block that has a window."""
    above = node.parent
    while above is not None and not above.args.get(CLAUSE):
        above = above.parent
    return above


def _select_rows(relation: Relation, streams: list[Relation], clause: Clause) -> str:
    """Write the query for those rows of a stream's log that a window over several streams shows."""
    names = ", ".join(f'"{f.name}"' for f in relation.fields)
    return (
        f'SELECT {names} FROM (SELECT {names}, UNNEST(RANGE(__n)) FROM (SELECT {names}, SUM("__mult")::BIGINT AS __n '
        f"FROM {last_rows(relation)} WHERE {_is_inside(relation, streams, clause)} GROUP BY {names}) WHERE __n > 0)"
    )


def last_rows(relation: Relation) -> str:
    """Write the FROM item of a stream's log: of upserts the last row of each key since a truncation, else all of it."""
    log = f'"log of {relation.name}"'
    if not relation.is_keyed:
        return log
    keys = ", ".join(f'"{name}"' for name in relation.primary_key)
    truncated = f'(SELECT MAX(__number) FROM {log} WHERE "__mult" = {TRUNCATED})'
    log += f" WHERE __number > COALESCE({truncated}, -1)"
    return f"(SELECT * FROM {log} QUALIFY ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY __number DESC) = 1)"


def _is_inside(relation: Relation, streams: list[Relation], clause: Clause) -> str:
    frame = clause.frame
    if frame is None:
        return "TRUE" if clause.since is None else f"{_time(relation)} >= epoch_us(TIMESTAMP '{clause.since}')"
    if frame.rows:
        time, now = "__number", f'(SELECT MAX(__number) FROM "log of {relation.name}")'
    else:
        clocks = " UNION ALL ".join(
            f'SELECT MAX({_time(r)}) - {r.delay_micros} AS t FROM "log of {r.name}"' for r in streams
        )
        time = _time(relation)
        now = f"(SELECT CASE WHEN COUNT(t) = COUNT(*) THEN MIN(t) END FROM ({clocks}))"
    if isinstance(frame, SessionExtent):
        times = f'SELECT {time} AS t FROM "log of {relation.name}"'
        pauses = f"SELECT t FROM (SELECT t, LEAD(t) OVER (ORDER BY t) AS n FROM ({times})) WHERE t IS NOT NULL"
        pauses += f" AND t + {frame.gap} < {now} AND (n IS NULL OR n - t > {frame.gap})"
        return f"{time} IS NOT NULL AND COALESCE({time} > (SELECT MAX(t) FROM ({pauses})), TRUE)"
    moved = f"{now} - (({now} % {frame.slide}) + {frame.slide}) % {frame.slide}"
    inside = f"{time} >= {moved}" if frame.tumbling else f"{time} > {moved} - {frame.size}"
    return f"{time} IS NOT NULL AND COALESCE({inside}, TRUE)"


def _time(relation: Relation) -> str:
    return f'epoch_us("{relation.timestamp}"::TIMESTAMP)'
