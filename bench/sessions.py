"""Views that come and go over stored rows, and ad hoc queries: `python -m bench.sessions [ROWS]`.

A stream of pushed rows, STORED, with a view of one record for each row. Views are added, filled from the stream or from
the view that is there; one is dropped; the view is asked ad hoc. Seconds, and seconds of processor time, are printed,
and the 99th percentile of batches of 10,000 rows, alone and while another view is filled.
"""

import sys
import threading
from collections.abc import Callable
from os import getloadavg
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

import squallpy
from squallpy import Session

CHUNK, BATCH = 100_000, 10_000
ADDED = {
    "sums by group, from the stream": "SELECT g, COUNT(*) AS n, SUM(v) AS total FROM r GROUP BY g",
    "extremes by group, from the stream": "SELECT g, MAX(v) AS most FROM r GROUP BY g",
    "one row, from the view": "SELECT COUNT(*) AS n, SUM(total) AS total FROM byk",
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


def percentile_of_batches(s: Session, act: Callable[[], object], first: int, least: int = 50) -> float:
    """Apply batches while something is done in another thread, and return the 99th percentile of their seconds."""
    worker, random, seconds = threading.Thread(target=act), np.random.default_rng(first), list[float]()
    worker.start()
    while worker.is_alive() or len(seconds) < least:
        s.push("r", rows(first + BATCH * len(seconds), BATCH, random))
        start = perf_counter()
        s.step()
        seconds.append(perf_counter() - start)
    worker.join()
    return float(np.percentile(seconds, 99))


def main(count: int) -> None:
    random = np.random.default_rng(1)
    with squallpy.connect(settings={"batch_rows": CHUNK}) as s:
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
        alone = percentile_of_batches(s, lambda: None, count)
        query = "CREATE MATERIALIZED VIEW w AS SELECT g, SUM(v) AS total FROM r GROUP BY g"
        beside = percentile_of_batches(s, lambda: s.sql(query), 2 * count)
        print(f"99th percentile of batches: {1e3 * alone:.1f} ms, while a view is filled {1e3 * beside:.1f} ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
