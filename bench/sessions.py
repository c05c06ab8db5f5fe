"""Views that come and go over stored rows, and ad hoc queries: `python -m bench.sessions [ROWS [CHECKPOINT]]`.

A stream of pushed rows, STORED, with a view of one record for each row. Views are added, filled from the stream or from
the view that is there; one is dropped; the view is asked ad hoc. Seconds, and seconds of processor time, are printed,
and of batches of 10,000 rows, at most twenty a second, the 99th percentile and the longest, alone and while a view
comes or goes.
"""

import sys
import threading
from collections.abc import Callable
from os import getloadavg
from time import perf_counter, process_time, sleep

import numpy as np
import pyarrow as pa

import squallpy
from squallpy import Session

CHUNK, BATCH, PAUSE = 100_000, 10_000, 0.05
ADDED = {
    "sums by group, from the stream": "SELECT g, COUNT(*) AS n, SUM(v) AS total FROM r GROUP BY g",
    "extremes by group, from the stream": "SELECT g, MAX(v) AS most FROM r GROUP BY g",
    "one row, from the view": "SELECT COUNT(*) AS n, SUM(total) AS total FROM byk",
}
BESIDE = {
    "a view added from the stream": "CREATE MATERIALIZED VIEW w0 AS SELECT g, SUM(v) AS total FROM r GROUP BY g",
    "a view added from the view": "CREATE MATERIALIZED VIEW w1 AS SELECT MAX(total) AS most, SUM(n) AS n FROM byk",
    "one dropped": "DROP VIEW w0",
}
ASKED = {
    "a record by its key": "SELECT * FROM byk WHERE k = 4711",
    "sums over all records": "SELECT COUNT(*) AS n, SUM(total) AS total FROM byk WHERE total > 500",
    "all records that pass a test": "SELECT * FROM byk WHERE total > 990",
}


def rows(first: int, count: int, random: np.random.Generator) -> pa.Table:
    """Make rows with keys of their own."""
    columns = {"k": np.arange(first, first + count), "g": random.integers(0, 1000, count)}
    return pa.table(columns | {"v": random.integers(0, 1000, count)})


def timed(what: str, act: Callable[[], object]) -> None:
    """Do something, and print how long it took."""
    start, processor = perf_counter(), process_time()
    act()
    print(f"{what:45} {perf_counter() - start:8.3f} s, processor {process_time() - processor:8.3f} s", flush=True)


def batches_beside(s: Session, what: str, act: Callable[[], object], first: int, least: int = 50) -> int:
    """Apply batches while something is done in another thread, and print their seconds; returns the next key."""
    random, seconds, ended = np.random.default_rng(first), list[float](), list[float]()
    start = perf_counter()

    def work() -> None:
        act()
        ended.append(perf_counter() - start)

    worker = threading.Thread(target=work)
    worker.start()
    while worker.is_alive() or len(seconds) < least:
        s.push("r", rows(first + BATCH * len(seconds), BATCH, random))
        begun = perf_counter()
        s.step()
        seconds.append(perf_counter() - begun)
        sleep(max(0.0, PAUSE - seconds[-1]))
    worker.join()
    high, longest = 1e3 * float(np.percentile(seconds, 99)), 1e3 * max(seconds)
    took = f"{ended[0]:.2f} s, {len(seconds)} batches"
    print(f"{what:45} {took}: 99th percentile {high:.1f} ms, longest {longest:.1f} ms", flush=True)
    return first + BATCH * len(seconds)


def main(count: int, checkpoint: str | None) -> None:
    random = np.random.default_rng(1)
    with squallpy.connect(checkpoint=checkpoint, settings={"batch_rows": CHUNK}) as s:
        s.stream("r", schema={"k": "BIGINT", "g": "INT", "v": "BIGINT"}, stored=True)
        s.sql("CREATE MATERIALIZED VIEW byk AS SELECT k, COUNT(*) AS n, SUM(v) AS total FROM r GROUP BY k")
        print(f"load {getloadavg()[0]:.1f}, {count:,} rows")

        def load() -> None:
            for first in range(0, count, CHUNK):
                s.push("r", rows(first, CHUNK, random))
                s.step()

        timed("all rows into the first view", load)
        for what, query in ASKED.items():
            s.query(query)  # NB: kernels are loaded when they are first used
            timed(f"asked: {what}", lambda query=query: s.query(query).to_arrow())  # type: ignore[misc]
        for number, (what, query) in enumerate(ADDED.items()):
            create = f"CREATE MATERIALIZED VIEW v{number} AS {query}"
            timed(f"added: {what}", lambda create=create: s.sql(create))  # type: ignore[misc]
        timed("dropped", lambda: s.sql("DROP VIEW v0"))
        first = batches_beside(s, "batches alone", lambda: None, count)
        for what, statement in BESIDE.items():
            first = batches_beside(s, f"batches beside: {what}", lambda given=statement: s.sql(given), first)  # type: ignore[misc]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000, sys.argv[2] if len(sys.argv) > 2 else None)
