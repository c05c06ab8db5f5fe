"""ORDER BY … LIMIT: what is printed after every batch, and the sum of what is said to have changed."""

from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.physical.planner import place
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.result import top_n
from squallpy.runtime.result.noted_rows import NotedRows
from squallpy.runtime.result.result import Results, result_layout
from squallpy.runtime.state.state_store import Store, StoreLayout
from squallpy.runtime.triggers.stage_executor import StageExecutor, store_layout

STREAM = "CREATE STREAM r (k INT NOT NULL, v INT NOT NULL) USING csv OPTIONS (path '-', op 'op');"
QUERIES = [
    "SELECT k, SUM(v) AS s FROM r GROUP BY k ORDER BY s DESC, k LIMIT 3",
    "SELECT k, SUM(v) AS s FROM r GROUP BY k HAVING COUNT(*) > 1 ORDER BY s, k LIMIT 2 OFFSET 1",
    "SELECT k, v FROM r ORDER BY v DESC, k LIMIT 4",
    "SELECT k, v FROM r LIMIT 5",
    "SELECT k, SUM(v) AS s FROM r GROUP BY k ORDER BY k DESC LIMIT 3",
    "SELECT k % 2 AS odd, k, SUM(v) AS s FROM r GROUP BY k ORDER BY odd, s DESC, k LIMIT 3",
    "SELECT CAST(k % 7 AS VARCHAR) AS t, v, COUNT(*) AS n FROM r GROUP BY t, v ORDER BY t DESC, n, v LIMIT 3",
    "SELECT k, NULLIF(CAST(MIN(v) % 3 AS VARCHAR), '1') AS t FROM r GROUP BY k ORDER BY t DESC NULLS FIRST, k LIMIT 4",
    "SELECT k % 5 AS t, NULLIF(k % 3, 0) AS u, v FROM r ORDER BY u NULLS LAST, t DESC LIMIT 3 OFFSET 2",
    "SELECT k, SUM(NULLIF(v % 9, 0) - 4) AS s FROM r GROUP BY k ORDER BY s DESC NULLS LAST, k LIMIT 3",
    "SELECT k, COUNT(*) AS n FROM r GROUP BY k ORDER BY n, k DESC LIMIT 3",
    "SELECT k, v FROM r ORDER BY v, k OFFSET 2",
    "SELECT k, SUM(v) / 3.0 AS s FROM r GROUP BY k ORDER BY s DESC, k LIMIT 3",
    "SELECT k, CAST(SUM(v) AS DOUBLE) / 7 AS s FROM r GROUP BY k ORDER BY s, k LIMIT 3 OFFSET 1",
    "SELECT k, SUM(CAST(v AS DECIMAL(38,0)) * 1000000000000000000) AS s FROM r GROUP BY k ORDER BY s DESC, k LIMIT 3",
    "SELECT k, SUM(v * k) AS s FROM r GROUP BY k ORDER BY s LIMIT 4",
    "SELECT COUNT(*) FROM r LIMIT 0",
]


@pytest.mark.parametrize("spare", [0, 3])
@pytest.mark.parametrize("sql", QUERIES)
def property_shown_rows_are_the_first_of_all(sql: str, spare: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top_n, "SPARE", spare)
    (query,) = compile_script(f"{STREAM} {sql};", "q.sql", lambda relation: ()).queries
    plan = place(to_program(query).program, 1, {})
    from squallpy.runtime.ingest.feed import Feeder

    for seed in [*range(8), 34]:
        draw, rows, shown = Random(seed), [], Counter()
        feeder, stage, result = Feeder(plan.feeds[0], 1), StageExecutor(plan, plan.stages[0]), Results(plan)
        every = Results(plan, wanted=False)  # lists all of the result, sorted at once
        store = Store(StoreLayout((*store_layout(plan).pools, *result_layout(plan).pools)))
        for batch in range(20):
            changes = []
            for _ in range(draw.randrange(15)):
                if rows and draw.random() < 0.45:
                    changes.append((*rows.pop(draw.randrange(len(rows))), -1))
                else:
                    rows.append((draw.randrange(40), draw.randrange(90)))
                    changes.append((*rows[-1], 1))
            (change,), _ = stage.apply(store, feeder(table(changes), store.dictionary))
            delta: Delta | NotedRows = Delta("Q", change.keys, change.words)
            if batch and seed % 2:  # as compiled batches do
                result.prepare(store)
                delta = noted(store, change)
            (said,) = result.apply(store, [delta], batch == 0)
            assert said is not None
            shown.subtract(said.deletes.to_pylist() and map(tuple, (r.values() for r in said.deletes.to_pylist())))
            shown.update(map(tuple, (r.values() for r in said.inserts.to_pylist())))
            (final,) = result.final(store)
            (listed,) = every.final(store)
            assert final.equals(listed)
            assert +shown == Counter(map(tuple, (r.values() for r in final.to_pylist())))
            assert min(shown.values(), default=0) >= 0


def table(changes: list[tuple[int, int, int]]) -> pa.RecordBatch:
    columns = list(zip(*changes, strict=True)) or [(), (), ()]
    return pa.record_batch([pa.array(c, pa.int64()) for c in columns], names=["k", "v", "__mult"])


def noted(store: Store, change: Delta) -> NotedRows:
    """Add a change to the result; its keys, payloads before, and after."""
    pool = store.pool("Q")
    before = pool.get(change.keys)
    pool.upsert(change.keys, change.words)
    words = [change.keys.ravel(), before.ravel(), pool.get(change.keys).ravel()]
    return NotedRows("Q", len(change.keys), np.concatenate(words))
