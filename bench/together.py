"""Ten views over TPC-H in one run against ten runs: `python -m bench.together [SCALE [BATCH_ROWS]]`.

Q3, Q5, Q10, Q12 and Q18, each with two constants, over the same streams; processor time of the batches behind the
first, reading included, and bytes of state, on the local executor.
"""

import sys
from os import getloadavg
from pathlib import Path
from time import process_time

import pyarrow as pa

from bench.data.queries import QUERIES
from squallpy.checkpoint_identity import columns_read
from squallpy.logical.nodes import Query
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.query_input import open_reading
from squallpy.script_session import ScriptSession
from squallpy.testing.tpch import TPCH

OTHER = {
    "q3": ("'BUILDING'", "'MACHINERY'"), "q5": ("'ASIA'", "'EUROPE'"), "q10": ("1993-10-01", "1994-01-01"),
    "q12": ("1994-01-01", "1995-01-01"), "q18": ("> 250", "> 280"),
}  # fmt: skip
"""A constant of each query, and another one in its place."""


def script(folder: Path) -> str:
    """Write the streams of all queries, then the queries with either constant."""
    text = QUERIES["q5"].session.text
    streams = {text[: text.rindex("SELECT n_name")]}
    selects = []
    for name, (one, other) in OTHER.items():
        select = QUERIES[name].text.rstrip().rstrip(";")
        selects += [f"{select};", f"{select.replace(one, other)};"]
    return "\n".join([*streams, *selects]).replace("(path 'data/", f"(path '{folder}/")


def measure(session: ScriptSession, queries: tuple[Query, ...], batch_rows: int) -> tuple[float, int, list[pa.Table]]:
    """Run queries together; returns seconds, bytes, and the result of each."""
    reading = open_reading(session.script.relations, session.path.parent, None)
    compiled = session.compile(queries, 1, dict(reading.sizes))
    reading.select(compiled.relations, columns_read(compiled), batch_rows, "proportional")
    executor = LocalExecutor(compiled.plan, reading.begin(None))
    executor.step()
    start = process_time()
    for _ in range(1, reading.batches or 0):
        executor.step()
    seconds = process_time() - start
    return seconds, sum(part["bytes"] for part in executor.store.usage().values()), [*executor.final()]


def main(scale: float, batch_rows: int) -> None:
    """Print both sides, and a run of a query beside a copy of itself."""
    folder = TPCH.generate_cached(scale)
    session = ScriptSession(folder / "together.sql", text=script(folder))
    queries = tuple(session.script.queries)
    for _ in range(2):
        alone = [measure(session, (query,), batch_rows) for query in queries]
        seconds, size = sum(took for took, _, _ in alone), sum(held for _, held, _ in alone)
        took, held, results = measure(session, queries, batch_rows)
        assert results == [each for _, _, some in alone for each in some]
        print(f"ten runs {seconds:.2f} s, {size >> 20} MB; together {took:.2f} s ({took / seconds:.2f} x), "
              f"{held >> 20} MB ({held / size:.2f} x); load {getloadavg()[0]:.1f}")  # fmt: skip
        one, two = (measure(session, queries[:1] * copies, batch_rows)[0] for copies in (1, 2))
        print(f"Q3 {one:.2f} s, beside a copy {two:.2f} s ({two / one:.2f} x)", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.1, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
