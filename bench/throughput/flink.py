"""Flink SQL beside ours on Spark, the whole stream, reading included: `python -m bench.throughput.flink [--scale 1]`.

    --queries LIST      q1, q3 …           [default: q1, q3, q6, q12, q17, q18, q22]
    --engines LIST      flink heap, flink rocksdb, squallpy csv, squallpy parquet
    --batch-rows N      of ours, per micro-batch           [default: 1,000,000]
    --scale S           of TPC-H                           [default: 1]

Flink runs in a mini-cluster of this machine with parallelism 2 and mini-batches of 10,000 rows, its state on the heap
or in RocksDB; it reads CSV files with the columns that the query names, for its Parquet format is not on PyPI. Ours
reads the same files, and Parquet. Each run is a process, warmed up at scale 0.01. Flink's answer goes nowhere.
"""

import argparse
import glob
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow.csv as csv
import pyarrow.parquet as pq

from bench.data.queries import QUERIES, Query
from bench.data.tables import CACHE, folder_of, generate, read_plain
from bench.engines.shared_cluster import warm
from squallpy.catalog.relation import Relation
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

RELEASE = "2.3.0"
QUERIES_OF_SPARK = ("q1", "q3", "q6", "q12", "q17", "q18", "q22")
ENGINES = ("flink heap", "flink rocksdb", "squallpy csv", "squallpy parquet")
WARM = 0.01  # scale
PATIENCE = 600.0  # seconds
_OPENS = (
    "java.io", "java.lang", "java.lang.reflect", "java.net", "java.nio", "java.text", "java.time", "java.util",
    "java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks",
)  # fmt: skip
_CONFIG = {
    "parallelism.default": "2",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "5 s",
    "table.exec.mini-batch.size": "10000",
}
HEAD = """# Flink SQL beside ours on Spark

Made by `python -m bench.throughput.flink`; do not edit. TPC-H at scale {scale:g}, the whole stream from its first row
to its last, reading included; 2 cores. Flink {release}: mini-cluster, parallelism 2, mini-batches of 10,000, CSV. Ours:
`local[2]`, batches of {batch_rows:,}, the same CSV files, and Parquet. *Gain*: ours over CSV against the better of
Flink's. Blank: not asked for, or not done in ten minutes. Tuples per second:

| query | tuples | Flink, heap | Flink, RocksDB | ours, CSV | ours, Parquet | gain |
|---|--:|--:|--:|--:|--:|--:|
"""


def main() -> None:
    options = parse()
    if options.one:
        engine, name = options.one.split("/")
        print(json.dumps(one(engine, name, options.scale, options.batch_rows)), flush=True)
        return
    install()
    text = HEAD.format(scale=options.scale, release=RELEASE, batch_rows=options.batch_rows)
    for name in options.queries:
        rates = {engine: measure(engine, name, options) for engine in options.engines}
        tuples = sum(pq.read_metadata(path).num_rows for path in parquet(QUERIES[name], options.scale).values())
        best = max(rates.get("flink heap", 0.0), rates.get("flink rocksdb", 0.0))
        cells = " | ".join(f"{rates[e]:,.0f}" if rates.get(e) else "" for e in ENGINES)
        gain = f"{rates['squallpy csv'] / best:.2f} ×" if best and rates.get("squallpy csv") else ""
        text += f"| {name} | {tuples:,} | {cells} | {gain} |\n"
        print(text, flush=True)
    options.out.write_text(text)


def parse() -> argparse.Namespace:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m bench.throughput.flink", description=__doc__, formatter_class=about
    )
    parser.add_argument("--queries", type=lambda text: text.split(","), default=list(QUERIES_OF_SPARK))
    parser.add_argument("--engines", type=lambda text: text.split(","), default=list(ENGINES))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--batch-rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "flink.md")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(engine: str, query: str, options: argparse.Namespace) -> float:
    """Tuples per second in a process of its own; 0 where it is refused or takes too long."""
    command = [
        sys.executable,
        "-m",
        "bench.throughput.flink",
        "--one",
        f"{engine}/{query}",
        "--scale",
        str(options.scale),
    ]
    command += ["--batch-rows", str(options.batch_rows)]
    log = CACHE / "logs" / f"{engine.replace(' ', '-')}-{query}.log"
    log.parent.mkdir(exist_ok=True)
    with log.open("w") as talk, suppress(subprocess.SubprocessError, IndexError, ValueError):
        told = subprocess.run(command, stdout=subprocess.PIPE, stderr=talk, text=True, timeout=PATIENCE, check=True)
        rate = float(json.loads(told.stdout.splitlines()[-1]))
        print(f"{query}, {engine}: {rate:,.0f} tuples/s, load {os.getloadavg()[0]:.1f}", flush=True)
        return rate
    print(f"{query}, {engine}: no answer; {log} says why", flush=True)
    return 0.0


def one(engine: str, name: str, scale: float, batch_rows: int) -> float:
    """The same in this process."""
    query, (system, how) = QUERIES[name], engine.split()
    run: Callable[[Query, float], None] = Flink(how) if system == "flink" else Ours(how, batch_rows)
    run(query, WARM)
    start = time.perf_counter()
    run(query, scale)
    seconds = time.perf_counter() - start
    tuples: int = sum(pq.read_metadata(path).num_rows for path in parquet(query, scale).values())
    return tuples / seconds


def parquet(query: Query, scale: float) -> dict[str, Path]:
    """The tables of a query."""
    folder = generate(query.benchmark, scale)
    return {name: folder / f"{name}.parquet" for name in query.tables}


def rows(query: Query, scale: float) -> Path:
    """A folder with the tables of a query as CSV, only the columns that it names."""
    folder = folder_of(query.benchmark, scale) / f"{query.name}-csv"
    if not (folder / "done").exists():
        folder.mkdir(exist_ok=True)
        for name, path in parquet(query, scale).items():
            table = read_plain(path, query.columns[name])
            csv.write_csv(table, folder / f"{name}.csv", csv.WriteOptions(include_header=False))
        (folder / "done").touch()
    return folder


class Flink:
    """Flink's table environment, in a JVM of its own."""

    def __init__(self, state: str) -> None:
        import pyspark
        from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

        [py4j] = glob.glob(f"{Path(pyspark.__file__).parent}/jars/py4j*.jar")
        jars = [py4j, *glob.glob(str(CACHE / "flink" / "pyflink" / "lib" / "*.jar"))]
        opens = [word for package in _OPENS for word in ("--add-opens", f"java.base/{package}=ALL-UNNAMED")]
        port = launch_gateway(
            jarpath=py4j, classpath=os.pathsep.join(jars), javaopts=[*opens, "-Xmx6g"], die_on_exit=True
        )
        jvm: Any = JavaGateway(gateway_parameters=GatewayParameters(port=port)).jvm
        api = jvm.org.apache.flink.table.api
        self._environment = api.TableEnvironment.create(api.EnvironmentSettings.newInstance().inStreamingMode().build())
        for key, value in (_CONFIG | {"state.backend.type": {"heap": "hashmap"}.get(state, state)}).items():
            self._environment.getConfig().set(key, value)
        self._runs = 0

    def __call__(self, query: Query, scale: float) -> None:
        """Run a query over its whole input."""
        self._runs += 1
        folder, execute = rows(query, scale), self._environment.executeSql
        for name in query.tables:
            columns = ", ".join(f"{column} {type_of(type)}" for column, type in query.types(name).items())
            source = f"'connector' = 'filesystem', 'path' = '{folder / name}.csv', 'format' = 'csv'"
            execute(f"DROP TEMPORARY TABLE IF EXISTS {name}")
            execute(f"CREATE TEMPORARY TABLE {name} ({columns}) WITH ({source})")
        asked = query.text if "LIMIT" in query.order else query.select  # it orders only what it cuts
        done = execute(f"CREATE TABLE nowhere_{self._runs} WITH ('connector' = 'blackhole') AS {asked}")
        getattr(done, "await")()


class Ours:
    """The Spark executor, over the same files or Parquet."""

    def __init__(self, how: str, batch_rows: int) -> None:
        self._open = ExitStack()
        self._open.enter_context(warm("local[2]"))
        self._how, self._options = how, RunOptions(batch_rows=batch_rows, changes=True)

    def __call__(self, query: Query, scale: float) -> None:
        """Run a query over its whole input."""
        with TemporaryDirectory() as folder:
            script = Path(folder) / "query.sql"
            script.write_text("".join(self._declared(query, r, scale) for r in query.relations.values()) + query.text)
            ScriptSession(script).run(self._options, IgnoringSink())

    def _declared(self, query: Query, relation: Relation, scale: float) -> str:
        names = query.columns[relation.name]
        fields = [f for f in relation.fields if f.name in names]
        lines = [f"{f.name} {f.type}{'' if f.type is None or f.nullable else ' NOT NULL'}" for f in fields]
        if relation.primary_key and set(relation.primary_key) <= set(names):
            lines.append(f"PRIMARY KEY ({', '.join(relation.primary_key)})")
        path = rows(query, scale) / f"{relation.name}.csv"
        if self._how == "parquet":
            path = parquet(query, scale)[relation.name]
        kind = "STREAM" if relation.stream else "TABLE"
        return f"CREATE {kind} {relation.name} ({', '.join(lines)}) USING {self._how} OPTIONS (path '{path}');\n"


def type_of(type: str) -> str:
    """A type of ours in Flink's words."""
    return "STRING" if type.startswith(("VARCHAR", "CHAR")) else type


def install() -> None:
    """Flink's jars, from PyPI."""
    if not (CACHE / "flink" / "pyflink").exists():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(CACHE / "flink")]
        subprocess.run([*pip, f"apache-flink-libraries=={RELEASE}"], check=True)


if __name__ == "__main__":
    main()
