"""One system on one query, on one core: the seconds of its batches, its state, and whether its answer is right."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import duckdb
import pyarrow as pa

from bench.data.answers import verdict
from bench.data.queries import QUERIES
from bench.data.tables import Stream
from bench.measure.processes import apart
from bench.native.loop import Loop, Schedule, Times
from bench.native.peers.coded import ROWS, Codes
from squallpy.testing.compare_rows import Row, difference
from squallpy.testing.oracle import to_duckdb

WORKSPACE = Path(__file__).parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", WORKSPACE / "target"))
MOST, SHARE = 600, 0.07  # batches of a size, and the part of the stream that they are


@dataclass(frozen=True)
class Program:
    """A package of the workspace, and the queries that it is run with."""

    name: str  # for people
    package: str
    queries: frozenset[str]
    summed: bool = False  # a batch's sums by group are added up before they enter
    plain: str = ""  # the system that stands in, in the means, for queries that this one has not


PROGRAMS = {
    "differential": Program("differential dataflow 0.26", "differential", frozenset(ROWS)),
    "differential-summed": Program(
        "differential dataflow, summed", "differential", frozenset(["q1", "q6"]), True, "differential"
    ),
    "dbsp": Program("DBSP 0.349", "feldera", frozenset(ROWS) - {"q17"}),
    "dbsp-summed": Program("DBSP, summed", "feldera", frozenset(["q1"]), True, "dbsp"),
}


@dataclass(frozen=True)
class Task:
    """A query over the tables in a folder, the sizes of its batches, and the core that it has."""

    query: str
    folder: Path
    rows: tuple[int, ...]
    core: int

    @property
    def stream(self) -> Stream:
        return Stream(QUERIES[self.query], self.folder, max(self.rows))

    @property
    def schedule(self) -> Schedule:
        return Schedule.of(self.stream.replay.sizes, self.rows, MOST, SHARE)


@dataclass
class Run:
    """Seconds of batches, bytes of state, and the answer: `equal`, or how it differs from DuckDB's."""

    times: Times
    state: int
    answer: str


def run_squallpy(task: Task) -> Run:
    """Run compiled triggers, in a process of their own."""
    return apart(task.core, _loop, task)


def _loop(task: Task) -> Run:
    loop = Loop(task.stream, task.schedule, ["compile=wait"])
    for _ in loop.run():
        pass
    (answer,) = loop.executor.final()
    return Run(Times(loop.seconds), loop.state, verdict(task.stream, answer))


def build(package: str) -> None:
    """Build a package of the workspace; leave the process where there is no cargo."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo/bin")
    if cargo is None:
        raise SystemExit("bench: cargo is not installed; https://rustup.rs has it")
    print(f"cargo builds {package}, which takes DBSP ten minutes or more, once", file=sys.stderr, flush=True)
    subprocess.run([cargo, "build", "--release", "--locked", "-q", "-p", package], cwd=WORKSPACE, check=True)


def run_program(program: Program, task: Task) -> Run:
    """Run a program of the workspace, which reads and prints lines as `stream/src/lib.rs` says."""
    codes, times, answer, state = Codes(task.folder), Times(), list[Row](), 0
    for table in task.stream.query.tables:
        codes.write(table, task.stream.query.columns[table])
    lines = subprocess.run(
        [TARGET / "release" / program.package],
        input="\n".join(_lines(program, task, codes)),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        preexec_fn=partial(os.sched_setaffinity, 0, {task.core}),
    ).stdout.splitlines()
    pieces = task.schedule.pieces
    for kind, *values in map(str.split, lines):
        if kind == "piece":
            rows, batches = pieces[int(values[0])]
            times.seconds[rows].append(float(values[1]) / len(batches))
        elif kind == "memory":
            before, peak = map(int, values)
            state = (peak - before) * 1024
        else:
            answer.append(ROWS[task.query](codes, *map(int, values)))
    return Run(times, state, difference(answer, _expected(task)).replace("\n", "; ") or "equal")


def _lines(program: Program, task: Task, codes: Codes) -> Iterator[str]:
    """What a program reads: query, columns, tables, and each batch with its piece and the ends of the tables' rows."""
    schedule = task.schedule
    yield from (task.query + " summed" * program.summed, str(codes.folder.resolve()), " ".join(schedule.sizes))
    piece_of = {batch: piece for piece, (_, batches) in enumerate(schedule.pieces) for batch in batches}
    for batch in range(schedule.batches):
        ends = schedule.bounds(batch)[1].values()
        yield " ".join(map(str, (piece_of.get(batch, "-"), *ends)))


@cache
def _expected(task: Task) -> pa.Table:
    """All rows of the query's answer, without its LIMIT."""
    connection, query = duckdb.connect(), task.stream.query
    for name in query.tables:
        connection.execute(f"CREATE VIEW {name} AS FROM '{task.folder / name}.parquet'")
    return connection.sql(to_duckdb(query.select)).to_arrow_table()
