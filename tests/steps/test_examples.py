"""The examples, fresh after every batch of inserts and deletes until nothing is left."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bench.data.nexmark import events
from bench.data.orderbook import book
from squallpy.runtime.sources.replay import Replay
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import PartitionedEngine, SparkEngine, VolatileEngine
from squallpy.testing.example_runs import Example, PrintedExample, keep_fresh, rounds
from squallpy.testing.oracle import MULT, Oracle, to_duckdb
from squallpy.testing.tpc import split_columns
from squallpy.testing.tpcds import TPCDS as DS
from squallpy.testing.tpch import TPCH as H
from tests.marks import long

EXAMPLES = Path(__file__).parents[2] / "examples"
TPCH = [f"tpch/q{number}" for number in range(1, 23)]
TPCDS = [f"tpcds/q{number}" for number in (3, 7, 19, 27, 34, 42, 43, 46, 52, 55, 68, 73, 79)]
ORDERBOOK = [f"orderbook/{name}" for name in ("vwap", "missed_trades", "price_spread", "axes", "market_maker")]
NEXMARK = [f"nexmark/q{number}" for number in range(23)]
# each in one process, which asks the oracle once
ALL = [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in (*TPCH, *TPCDS, *ORDERBOOK, *NEXMARK)]
ON_SPARK = ("tpch/q2", "tpch/q17", "tpch/q22", "tpcds/q7", "tpcds/q46", "tpcds/q73", *ORDERBOOK)
PARTS = 4
STATIC = {"tpch": H.static, "nexmark": ("side_input",)}
# TPC-DS: the sales' side of its dimensions; those of any scale have two million customers' demographics
REFERENCES = {
    "customer": "ss_customer_sk", "customer_demographics": "ss_cdemo_sk", "household_demographics": "ss_hdemo_sk",
    "date_dim": "ss_sold_date_sk",
}  # fmt: skip


@cache
def tables(benchmark: str) -> dict[str, pa.Table]:
    """Small tables: TPC-H at scale 0.01; TPC-DS, too, of its dimensions what the sales name; a book of 800 orders; five
    events of Nexmark a second, for eight minutes."""
    if benchmark == "nexmark":
        return events(2_500, micros=200_000)
    if benchmark == "orderbook":
        return {side: orders.drop_columns("__op") for side, orders in book(800, 0).items()}
    if benchmark == "tpch":
        folder, columns = H.generate_cached(0.01), H.columns
    else:
        folder, columns = DS.generate_cached(0.01), DS.columns
    names = {t: [c.split()[0] for c in split_columns(text)] for t, text in columns.items()}
    read = {t: plain(pq.read_table(folder / f"{t}.parquet", columns=names[t])) for t in columns}
    if benchmark == "tpcds":
        for name, reference in REFERENCES.items():
            read[name] = read[name].filter(pc.is_in(read[name].column(0), read["store_sales"][reference]))
    return read


def plain(table: pa.Table) -> pa.Table:
    """The generators' views of strings as strings, which Arrow can filter and take."""
    views = pa.string_view()
    return table.cast(pa.schema([(f.name, pa.string() if f.type == views else f.type) for f in table.schema]))


@cache
def batches(benchmark: str) -> tuple[dict[str, pa.Table], ...]:
    return tuple(rounds(tables(benchmark), PARTS))


@cache
def example_of(name: str) -> Example:
    benchmark = name.partition("/")[0]
    static = {table: tables(benchmark)[table] for table in STATIC.get(benchmark, ())}
    return Example((EXAMPLES / f"{name}.sql").read_text(), batches(benchmark), static)


def run(example: str, engine: Any, folder: Path) -> Iterator[int]:
    return keep_fresh(example_of(example), engine, folder)


@pytest.mark.parametrize("example", ALL)
def oracle_examples(example: str, tmp_path: Path) -> None:
    """In the end views hold again what they held before the first row: what static tables put there."""
    engine = VolatileEngine()
    sizes = [(rows, engine.row_counts()) for rows in run(example, engine, tmp_path)]
    assert max(rows for rows, _ in sizes) > 0
    assert sizes[-1] == sizes[0]


@pytest.mark.parametrize("example", ORDERBOOK)
def oracle_orderbook_in_time(example: str, tmp_path: Path) -> None:
    """Orders as they come and go, 100 at a time."""
    text = (EXAMPLES / f"{example}.sql").read_text()
    moving = Example(text, list(moments(book(300, 900, seed=1), 100)), {})
    assert min(list(keep_fresh(moving, VolatileEngine(), tmp_path))[1:]) > 0


@pytest.mark.parametrize("example", ["bill_of_materials", "same_generation", "shortest_paths"])
def oracle_recursion_files(example: str) -> None:
    """From their files, with deletes, four rows a batch; DuckDB's rows, or a naive loop's over them."""
    session, kept = ScriptSession(EXAMPLES / "recursion" / f"{example}.sql"), PrintedExample()
    session.run(RunOptions(backend="local", batch_rows=4), kept)
    ((name, relation),) = session.script.relations.items()
    path, titles = EXAMPLES / "recursion" / relation.options["path"], ["__op", *(f.name for f in relation.fields)]
    rows = pa.csv.read_csv(path, pa.csv.ReadOptions(column_names=titles))
    oracle = Oracle({name: relation}, session.script.queries[0].text)
    oracle.push(name, signed(rows))
    assert len(kept.table) > 5
    assert not difference(kept.table, oracle.answer(), ordered=True)


def moments(sides: dict[str, pa.Table], events: int) -> Iterator[dict[str, pa.Table]]:
    """Change streams as batches, so many events of all at a time."""
    replay = Replay({side: len(orders) for side, orders in sides.items()}, events)
    for batch in range(replay.batches):
        now = {side: sides[side].slice(start, stop - start) for side, (start, stop) in replay.ranges(batch).items()}
        yield {side: signed(orders) for side, orders in now.items()}


def signed(orders: pa.Table) -> pa.Table:
    signs = pc.if_else(pc.equal(orders["__op"], "+"), 1, -1).cast(pa.int64())
    return orders.drop_columns("__op").append_column(MULT, signs)


@pytest.mark.parametrize("example", TPCDS)
def oracle_tpcds_files(example: str, tmp_path: Path) -> None:
    """From the generator's files, whole."""
    folder, script = DS.generate_cached(0.01), tmp_path / "example.sql"
    text = (EXAMPLES / f"{example}.sql").read_text()
    script.write_text(text.replace("(path 'data/", f"(path '{folder}/"))
    session, connection = ScriptSession(script), duckdb.connect()
    kept = PrintedExample()
    session.run(RunOptions(backend="local", batch_rows=200_000), kept)
    for name in session.script.relations:
        connection.execute(f"CREATE VIEW {name} AS FROM '{folder / name}.parquet'")
    expected = connection.execute(to_duckdb(session.script.queries[0].text)).fetchall()
    assert len(kept.table) > 0
    assert not difference(kept.table, expected, ordered=True)


@pytest.mark.long
@pytest.mark.parametrize("example", ALL)
def differential_examples(example: str, tmp_path: Path) -> None:
    assert max(run(example, PartitionedEngine(3), tmp_path)) > 0


@pytest.mark.spark
@pytest.mark.parametrize("example", [long(name) if name.startswith("tpcds") else name for name in ON_SPARK])
def oracle_examples_spark(example: str, tmp_path: Path, cluster: Any) -> None:
    assert max(run(example, SparkEngine(cluster, 2), tmp_path)) > 0
