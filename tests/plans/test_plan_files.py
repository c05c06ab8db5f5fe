"""The plans of plans/, fresh after every batch of inserts and deletes until nothing is left, on all executors."""

import re
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.plan_file import load_plan
from squallpy.plans import DataSource
from squallpy.terminal.cli import main
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import LocalEngine, MemoryEngine, PartitionedEngine, SparkEngine
from squallpy.testing.example_runs import Example, keep_fresh, rounds
from squallpy.testing.oracle import MULT, to_duckdb
from squallpy.testing.tpc import split_columns
from squallpy.testing.tpch import TPCH
from tests.marks import long

ROOT = Path(__file__).parents[2]
DECLARED = "\n".join(TPCH.create(name, name) for name in TPCH.columns)
DECLARED += "".join(TPCH.create("lineitem", "").replace("lineitem", name) for name in ("l1", "l2"))
QUERIES = {
    "hyracks": """
        SELECT c_mktsegment, COUNT(o_orderkey) AS n FROM customer JOIN orders ON c_custkey = o_custkey
        GROUP BY c_mktsegment""",
    "band": """
        SELECT l1.l_orderkey, l1.l_linenumber, l2.l_orderkey AS other_order, l2.l_linenumber AS other_line
        FROM l1 JOIN l2 ON ABS(l1.l_orderkey - l2.l_orderkey) <= 1
        WHERE l1.l_shipmode = 'TRUCK' AND l1.l_quantity > 48 AND l2.l_shipinstruct = 'NONE'""",
    "theta": """
        SELECT c_mktsegment, COUNT(*) AS n FROM customer, supplier, part
        WHERE c_acctbal > s_acctbal AND c_acctbal < p_retailprice GROUP BY c_mktsegment""",
}
NAMES = ("hyracks", "q3", "q5", "q7", "band", "theta")
PARTS = 3


@cache
def tables() -> dict[str, pa.Table]:
    folder = TPCH.generate_cached(0.01)
    names = {name: [column.split()[0] for column in split_columns(text)] for name, text in TPCH.columns.items()}
    read = {name: pq.read_table(folder / f"{name}.parquet", columns=columns) for name, columns in names.items()}
    views = pa.string_view()
    found = {
        name: table.cast(pa.schema([(f.name, pa.string() if f.type == views else f.type) for f in table.schema]))
        for name, table in read.items()
    }
    return found | dict.fromkeys(("l1", "l2"), found["lineitem"])


def query_of(name: str) -> str:
    """Return a plan's query in SQL, without its declarations."""
    text = QUERIES.get(name) or (ROOT / "examples" / "tpch" / f"{name}.sql").read_text()
    return text.rpartition(";\n\n")[2].rstrip().rstrip(";")


@cache
def example_of(name: str) -> Example:
    """Make the example of a plan's query in SQL."""
    text = f"{DECLARED}{query_of(name)};"
    static = {table: tables()[table] for table in TPCH.static}
    return Example(text, list(rounds(tables(), PARTS)), static)


def run(name: str, engine: MemoryEngine, folder: Path) -> int:
    """Run the plan of a file instead of the example's script; return the most rows of its answers."""
    plan = folder / f"{name}.py"
    plan.write_text(as_changes((ROOT / "plans" / f"{name}.py").read_text()))
    read = {r.name: [f.name for f in r.fields] for r in load_plan(plan).script.relations.values()}
    engine.open_session = lambda path, settings: load_plan(plan, settings)
    example = copy(example_of(name))
    example.tables = _columns_of(example.tables, read)
    example.batches = [_columns_of(batch, read) for batch in example.batches]
    return max(keep_fresh(example, engine, folder))


def _columns_of(rows: dict[str, pa.Table], read: dict[str, list[str]]) -> dict[str, pa.Table]:
    """Take the columns that a plan declares of the relations that it reads."""
    return {
        name: table.select([*read[name], *({MULT} & {*table.column_names})])
        for name, table in rows.items()
        if name in read
    }


def as_changes(text: str) -> str:
    """Make change streams of the streams of a plan, and tables without files, for rows that are pushed."""
    calls = re.split(r"(?=DataSource\()", text)
    return "".join(_pushed(call) if call.startswith("DataSource(") else call for call in calls)


def _pushed(call: str) -> str:
    op = "" if "table=True" in call else ', options={"op": "__op"}'
    return re.sub(r'"\.\./examples/tpch/data/(\w+)\.parquet",', rf'path="\1.csv"{op}, schema=', call)


@pytest.mark.parametrize("name", NAMES)
def oracle_plan_files(name: str, tmp_path: Path) -> None:
    assert run(name, LocalEngine(), tmp_path) > 0


@pytest.mark.parametrize("name", NAMES)
def oracle_plan_files_on_partitions(name: str, tmp_path: Path) -> None:
    assert run(name, PartitionedEngine(3), tmp_path) > 0


@pytest.mark.spark
@pytest.mark.parametrize("name", [long(each) if place % 2 else each for place, each in enumerate(NAMES)])
def oracle_plan_files_on_spark(name: str, tmp_path: Path, cluster: Any) -> None:
    assert run(name, SparkEngine(cluster, 3), tmp_path) > 0


@pytest.mark.parametrize("name", NAMES)
def oracle_plan_files_as_they_stand(name: str, tmp_path: Path) -> None:
    """Run by `squall run`, over the files that they name."""
    data, plan = tmp_path / "examples" / "tpch" / "data", tmp_path / "plans" / f"{name}.py"
    data.parent.mkdir(parents=True)
    data.symlink_to(TPCH.generate_cached(0.01))
    plan.parent.mkdir()
    plan.write_text((ROOT / "plans" / plan.name).read_text())
    connection = duckdb.connect()
    for table in (*TPCH.columns, "l1", "l2"):
        file = "lineitem" if table in ("l1", "l2") else table
        connection.execute(f"CREATE VIEW {table} AS FROM '{data / file}.parquet'")
    expected = connection.execute(to_duckdb(query_of(name))).fetchall()
    assert (
        main(["run", str(plan), "--backend", "local", "--batch-rows", "20000", "--out", str(tmp_path / "rows.parquet")])
        == 0
    )
    assert not difference(pq.read_table(tmp_path / "rows.parquet"), expected, ordered="ORDER BY" in query_of(name))
    assert expected


def test_columns_are_those_of_the_files() -> None:
    customer = DataSource("customer", TPCH.generate_cached(0.01) / "customer.parquet")
    assert [f"{c.name} {c.type}" for c in customer.columns][:2] == ["c_custkey BIGINT", "c_name VARCHAR"]
