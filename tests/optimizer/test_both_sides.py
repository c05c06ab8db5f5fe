"""Every rule: a query that it changes, run as bound and as optimised on one ± stream, the same after each batch."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from squallpy.catalog.relation import MULT
from squallpy.compiler import to_program
from squallpy.explain import Tracer
from squallpy.logical.bind import compile_script
from squallpy.optimizer.pipeline import ALL
from squallpy.testing.compare import difference
from squallpy.testing.engines import VolatileEngine

STREAMS = """
CREATE STREAM r (a INT, b INT, c BOOLEAN) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (b INT, d INT) USING csv OPTIONS (path 's', op 'op');
CREATE STREAM w (t TIMESTAMP, e INT) USING csv OPTIONS (path 'w', op 'op') TIMESTAMP BY t;
"""
VALUES = {"a": (0, 1, 2, 3, None), "b": (0, 1, None), "c": (True, False, None), "d": (0, 1, 2, None)}
VALUES |= {"t": (*range(0, 60_000_000, 1_000_000), None), "e": (0, 1, 2)}
Row = tuple[Any, ...]
FIELDS = {"r": "abc", "s": "bd", "w": "te"}
QUERIES = {
    "fold_constant": "SELECT a + (1 + 10) AS x, SUM(2 * 3) FROM r WHERE a + 1 > 1 / 0 OR 1 = 1 GROUP BY a + (1 + 10)",
    "fold_case": "SELECT a, CASE WHEN 1 = 2 THEN 1 / 0 WHEN a > 1 THEN b WHEN TRUE THEN 7 END AS x FROM r",
    "fold_constant_in_and": "SELECT a FROM r WHERE a > 1 AND TRUE",
    "fold_constant_in_or": "SELECT a FROM r WHERE c OR FALSE OR NOT TRUE",
    "fold_not": "SELECT a, d FROM r, s WHERE NOT (r.b = s.b) AND NOT NOT c AND NOT (r.a > s.d)",
    "decide_arms": "SELECT a, CASE WHEN a IN (SELECT d FROM s) OR c THEN 1 ELSE 2 END AS x FROM r",
    "decide_predicate": "SELECT a FROM r WHERE c OR (a > 0 AND b IN (SELECT d FROM s))",
    "open_abs": "SELECT a, d FROM r, s WHERE ABS(r.a - s.d) <= 1 AND r.b > ABS(s.b)",
    "factor_conjunct_out_of_or": "SELECT a, d FROM r, s WHERE (r.b = s.b AND a = 1) OR (r.b = s.b AND d = 2)",
    "merge_filters": "SELECT a FROM (SELECT * FROM (SELECT * FROM r WHERE a > 0) x WHERE b = 1) y WHERE c",
    "push_filter_below_project": "SELECT k FROM (SELECT a + b AS k, c AS z FROM r) x WHERE k > 1 OR z",
    "restrict_inputs_of_or": "SELECT a, d FROM r, s WHERE (a = 1 AND d = 2) OR (a > 1 AND d = 1) OR (a = 0 AND d = 0)",
    "push_filter_below_join": "SELECT a, COUNT(*) FROM r JOIN s ON r.b = s.b AND d > 0 WHERE a + d > 1 GROUP BY a",
    "push_filter_below_window": "SELECT e, COUNT(*) FROM w WHERE e > 0 GROUP BY e RANGE 9 SEC",
    "push_filter_below_union": "SELECT b FROM (SELECT b, c FROM r UNION SELECT d, b = 1 FROM s) q WHERE b > 0 OR NOT c",
    "push_filter_below_aggregate": "SELECT b, COUNT(DISTINCT a) FROM r GROUP BY b HAVING b < 1 AND SUM(a) > 0",
    "strengthen_left_join": "SELECT a, d FROM r LEFT JOIN s ON r.b = s.b WHERE d IN (1, 2) AND (a > d OR c)",
    "push_filter_left": "SELECT a, d FROM r LEFT JOIN s ON r.b = s.b WHERE a > 1 AND (d IS NULL OR d = 0)",
    "push_on_right": "SELECT a FROM r LEFT ANTI JOIN s ON r.b = s.b AND d > 0 AND a > 1",
    "drop_input_of_union": "SELECT v, n FROM (SELECT 'r' AS k, a AS v, COUNT(*) AS n FROM r GROUP BY a "
    "UNION ALL SELECT 's', d, COUNT(*) FROM s GROUP BY d) u WHERE k = 's'",
    "drop_true_predicate": "SELECT a FROM r WHERE TRUE",
    "exists_not_equal": "SELECT a FROM r WHERE EXISTS (SELECT * FROM s WHERE s.b = r.b AND s.d <> r.a)",
    "aggregate_over_left_join": "SELECT a, COUNT(d) FROM r LEFT JOIN s ON r.b = s.b GROUP BY a",
    "drop_redundant_lookups": "SELECT a FROM r WHERE b IN (SELECT b FROM r)",
    "rewrite_extremes": "SELECT a, (SELECT MAX(d) FROM s WHERE s.d < r.a) AS m FROM r",
    "maintain_threshold_intervals": "SELECT SUM(a) FROM r WHERE (SELECT SUM(d) FROM s) > 2 * (SELECT SUM(x.d) FROM s x "
    "WHERE x.d > r.a)",
    "prune_columns": "SELECT COUNT(*) FROM w TUMBLE 9 SEC",
    "push_tests_into_scalars": "SELECT a FROM r WHERE a NOT IN (SELECT d FROM s)",
    "clamp_existence_counts": "SELECT a, d FROM r LEFT JOIN s ON r.b = s.b WHERE d IS NULL OR d = 0",
    "split_range_disjunctions": "SELECT a, d FROM r, s WHERE r.b = s.b AND (d > a + 1 OR d < a - 1)",
    "left_join_to_anti_join": "SELECT a FROM r WHERE NOT EXISTS (SELECT * FROM s WHERE s.b = r.b AND s.d > 0)",
    "groupjoin": "SELECT a, n FROM r LEFT JOIN (SELECT b, COUNT(*) AS n FROM s GROUP BY b) q ON r.b = q.b",
    "expand_outer_joins": "SELECT a, d FROM r LEFT JOIN s ON r.b = s.b",
    "inline_auxiliary": "SELECT a FROM r WHERE EXISTS (SELECT * FROM s WHERE s.b = r.b AND s.d <> r.a)",
}


def steps() -> list[str]:
    """All rules, and the passes that have none."""
    optional = (each for _, passes in ALL for each in passes if not each.required)
    return list(dict.fromkeys(name for each in optional for name in each.rules or (each.name,)))


def test_every_rule_is_here() -> None:
    assert sorted(QUERIES) == sorted(steps())


@pytest.mark.parametrize("rule", QUERIES)
def test_rule_changes_its_query(rule: str) -> None:
    (query,) = compile_script(f"{STREAMS} {QUERIES[rule]};", "q.sql", lambda relation: ()).queries
    tracer = Tracer()
    to_program(query, observer=tracer)
    assert rule in tracer.names


@pytest.mark.parametrize("rule", QUERIES)
def differential_both_sides(rule: str, tmp_path: Path) -> None:
    sides = [VolatileEngine(optimizer=True), VolatileEngine(optimizer=False)]
    for number, side in enumerate(sides):
        (tmp_path / str(number)).mkdir()
        side.start(f"{STREAMS} {QUERIES[rule]};", tmp_path / str(number), {})
    draw, stored = Random(rule), {name: list[Row]() for name in FIELDS}
    for batch in range(6):
        changes = {name: rows(draw, FIELDS[name], stored[name]) for name in FIELDS}
        optimised, plain = (side.push(changes) for side in sides)
        assert not difference(optimised, plain), f"changes of batch {batch}"
        assert not difference(*(side.result() for side in sides)), f"after batch {batch}"


def rows(draw: Random, fields: str, stored: list[Row]) -> pa.Table:
    """Draw up to 20 changes of a stream, two inserts for each delete of a row that is `stored`."""
    changes: list[tuple[Row, int]] = []
    for _ in range(draw.randrange(20)):
        if stored and draw.randrange(3) == 0:
            changes.append((stored.pop(draw.randrange(len(stored))), -1))
        else:
            changes.append((tuple(draw.choice(VALUES[f]) for f in fields), 1))
            stored.append(changes[-1][0])
    columns = {f: pa.array([row[i] for row, _ in changes], kind(f)) for i, f in enumerate(fields)}
    return pa.table({**columns, MULT: pa.array([sign for _, sign in changes], pa.int64())})


def kind(field: str) -> pa.DataType:
    return {"c": pa.bool_(), "t": pa.timestamp("us")}.get(field, pa.int64())
