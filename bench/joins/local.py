"""Band joins in one process beside DuckDB: `python -m bench.joins.local`.

    --runs LIST        join:scale                                 [default: bnci:0.1, bnci:1, bci:0.01, bci:0.1]
    --batch-rows N                                                [default: 10,000]
    --samples N        batches of DuckDB that are measured, spread over the stream    [default: 25]

The local executor runs the whole stream twice, rows decoded beforehand, and reading the files; the changes of its
result are made, and printed nowhere. DuckDB has the form with BETWEEN, its tables in memory. It is asked again over all
of them, or by hand: for the new rows of each side with the other's.
"""

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.engines.squall_local import Decoded
from bench.joins.operators import BAND, JOINS, LINEITEM, script, skewed
from bench.measure.batches import Watch
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.input import Input
from squallpy.runtime.sources.replay import Replay
from squallpy.script_session import ScriptSession

WARM = 4  # batches of a run that is not counted
BETWEEN = {
    "bnci": ("l1.l_orderkey BETWEEN l2.l_orderkey - 1 AND l2.l_orderkey + 1", JOINS["bnci"][1]),
    "bci": ("l1.l_shipdate BETWEEN l2.l_shipdate - 1 AND l2.l_shipdate + 1", JOINS["bci"][1]),
}
HEAD = """# Band joins in one process

Made by `python -m bench.joins.local`; do not edit. Batches of {batch_rows:,}, {cores} cores. Millions of tuples per
second of the whole stream. squallpy: rows decoded beforehand, and reading Parquet; DuckDB {duckdb}, from {samples}
batches spread over the stream: asked again over all rows, and asked by hand for what is new. *Times*: the first by
DuckDB's. *Compared*: comparisons for each tuple of the stream, then the pairs that came of it.

| join | SF | tuples | pairs | squallpy | with files | DuckDB again | times | DuckDB by hand | times | compared |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""


@dataclass(frozen=True)
class Streams:
    """Both sides of a join, interleaved."""

    join: str
    folder: Path
    batch_rows: int

    @property
    def tables(self) -> dict[str, pa.RecordBatch]:
        read = {name: pq.read_table(self.folder / f"{name}.parquet") for name in ("l2", "l1")}
        return {name: table.combine_chunks().to_batches()[0] for name, table in read.items()}


@dataclass
class Ours:
    """A run of the local executor."""

    seconds: float = 0.0
    tuples: int = 0
    pairs: int = 0
    compared: int = 0


def local(session: ScriptSession, sources: dict[str, Any], batch_rows: int, batches: int | None = None) -> Ours:
    """The session's query over the sources; results that only grow are not kept."""
    (query,) = session.script.queries
    sizes = {name: source.rows for name, source in sources.items()}
    plan = replace(session.compile(query, 1, sizes).plan, keeps_results=False)
    replay = Replay(sizes, batch_rows)
    executor, out = LocalExecutor(plan, Input(sources, replay)), Ours()
    while executor.next < (batches or replay.batches):
        since = perf_counter()
        (changes,), report = executor.step()
        out.seconds += perf_counter() - since
        assert changes and not len(changes.deletes)
        out.tuples += report.tuples
        out.pairs += len(changes.inserts)
        out.compared += report.compared or 0
    return out


def predicate(join: str) -> str:
    """The join's condition in the form with BETWEEN."""
    between, query = BETWEEN[join]
    rest = query.removeprefix(BAND).rstrip(";").split(" AND ", 1)[1]
    return f"{between} AND {rest}"


def again(join: str) -> tuple[str, ...]:
    """What DuckDB is asked over all rows."""
    return (f"{BAND}{predicate(join)}",)


def by_hand(join: str) -> tuple[str, ...]:
    """What it is asked for what is new: new rows of l1 with all of l2, and new ones of l2 with what l1 had."""
    query = f"{BAND}{predicate(join)}"
    return (
        query.replace("FROM l1 JOIN l2", "FROM new1 l1 JOIN l2"),
        query.replace("FROM l1 JOIN l2", "FROM old1 l1 JOIN new2 l2"),
    )


def duck(streams: Streams, queries: Iterable[str], samples: int) -> float:
    """Seconds of the whole stream, from those of some batches."""
    tables = streams.tables
    replay, watch = (
        Replay({name: len(table) for name, table in tables.items()}, streams.batch_rows),
        Watch(samples=samples),
    )
    connection, done = duckdb.connect(), 0
    for name in tables:
        connection.execute(f"CREATE TABLE {name} ({LINEITEM})")
    chosen = watch.plan(replay.batches)
    for batch in chosen:
        _append(connection, tables, replay, done, batch)
        new = _rows(tables, replay, batch, batch + 1)
        seen, _ = replay.ranges(batch)["l1"]
        connection.execute(f"CREATE OR REPLACE VIEW old1 AS SELECT * FROM l1 WHERE rowid < {seen}")
        connection.register("new1", new["l1"])
        connection.register("new2", new["l2"])
        since = perf_counter()
        _append(connection, tables, replay, batch, batch + 1)
        for query in queries:
            connection.sql(query).to_arrow_table()
        watch.record(batch, perf_counter() - since)
        done = batch + 1
    connection.close()
    seconds = list(watch.seconds.values())
    middles = np.array(chosen)
    return float(np.interp(np.arange(replay.batches), middles, seconds).sum())


def _rows(tables: dict[str, pa.RecordBatch], replay: Replay, first: int, stop: int) -> dict[str, pa.Table]:
    starts, ends = replay.ranges(first), replay.ranges(stop)
    return {
        name: pa.table(table.slice(starts[name][0], ends[name][0] - starts[name][0])) for name, table in tables.items()
    }


def _append(connection: Any, tables: dict[str, pa.RecordBatch], replay: Replay, first: int, stop: int) -> None:
    for name, rows in _rows(tables, replay, first, stop).items():
        if len(rows):
            connection.register("arrived", rows)
            connection.execute(f"INSERT INTO {name} SELECT * FROM arrived")
            connection.unregister("arrived")


def line(join: str, scale: float, batch_rows: int, samples: int) -> str:
    """All systems on one join."""
    streams = Streams(join, skewed(scale, 0.0), batch_rows)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "join.sql"
        path.write_text(script(join, streams.folder))
        session = ScriptSession(path)
        decoded = {name: Decoded(table) for name, table in streams.tables.items()}
        files = {name: open_source(r, path.parent) for name, r in session.script.relations.items()}
        local(session, decoded, batch_rows, WARM)
        ours, whole = local(session, decoded, batch_rows), local(session, files, batch_rows)
    decoded.clear()
    asked, wanted = duck(streams, again(join), samples), duck(streams, by_hand(join), samples)

    def rate(seconds: float) -> str:
        return f"{ours.tuples / seconds / 1e6:.3g}"

    def times(seconds: float) -> str:
        return f"{seconds / ours.seconds:.3g}"

    return (
        f"| {join} | {scale:g} | {ours.tuples:,} | {ours.pairs:,} | {rate(ours.seconds)} | {rate(whole.seconds)} "
        f"| {rate(asked)} | {times(asked)} | {rate(wanted)} | {times(wanted)} "
        f"| {ours.compared / ours.tuples:.3g}, {ours.pairs / ours.tuples:.3g} |\n"
    )


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m bench.joins.local", description=__doc__, formatter_class=about)
    parser.add_argument("--runs", default="bnci:0.1,bnci:1,bci:0.01,bci:0.1")
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "joins-local.md")
    given = parser.parse_args()

    text = HEAD.format(
        batch_rows=given.batch_rows, cores=os.cpu_count(), duckdb=duckdb.__version__, samples=given.samples
    )
    for one in given.runs.split(","):
        join, scale = one.split(":")
        text += line(join, float(scale), given.batch_rows, given.samples)
        print(text.splitlines()[-1], flush=True)
    given.out.write_text(text)


if __name__ == "__main__":
    main()
