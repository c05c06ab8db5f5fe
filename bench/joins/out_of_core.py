"""Joiners whose state outgrows their memory (Table 2 of `adaptive-online-joins`, where SHJ "overflows to disk").

    python -m bench.joins.out_of_core        as root, with memory cgroups (v1) and a disk

    --scale F          of lineitem and suppliers              [default: 0.25]
    --zipf LIST        skew of the suppliers of lineitem      [default: 0, 0.5, 1]
    --joiners N                                               [default: 8]
    --batch-rows N                                            [default: 10,000]
    --spare F          memory of a joiner for state, by what each has of an even spread  [default: 1.25]
    --quarter-scale F  of lineitem, for the second table      [default: 0.25]
    --folder PATH      on a disk                              [default: /var/tmp]

A joiner is a process, in a cgroup of its own, with its pools in files. They work in turns, and what counts is the
slowest of each stage of a batch: as machines of their own would take. A second table has one joiner with a quarter of
the memory that its state takes.
"""

import argparse
import multiprocessing
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.joins.operators import WARM, script, skewed
from squallpy.base.records import dataclass
from squallpy.base.settings import BINARY_OPERATORS
from squallpy.physical.plan import Plan
from squallpy.runtime.batch.micro_batch import PartitionStages
from squallpy.runtime.sources.input import Input
from squallpy.runtime.state.pool_storage import MappedStorage
from squallpy.runtime.state.state_store import Store
from squallpy.runtime.triggers.stage_executor import store_layout
from squallpy.testing.engines import PartitionedEngine

GROUPS = Path("/sys/fs/cgroup/memory/squallpy-bench")
Batch = dict[str, pa.Table]
ROOM = 4 << 20  # bytes of a joiner above what it took when nothing was short
THETA = (
    "CREATE STREAM s (id BIGINT, b BIGINT, c BIGINT) USING csv OPTIONS (path 's.csv');\n"
    "CREATE STREAM r (a BIGINT, d BIGINT) USING csv OPTIONS (path 'r.csv');\n"
    "SELECT r.a, COUNT(*) AS n FROM r JOIN s ON (r.a + s.b) % 7 <> s.c GROUP BY r.a;"
)
HEAD = """# Join operators out of core

Made by `python -m bench.joins.out_of_core`; do not edit. TPC-H at scale {scale:g}, each row of lineitem with its
supplier and nation (EQ7), suppliers drawn by Zipf's law; {joiners} joiners, batches of {batch_rows:,}. Each is a
process in a cgroup whose memory holds {spare:g} × the state that an even spread gives it, {memory:.0f} MB; pools are
files on a disk. Joiners work in turns; *seconds* are those of the slowest in each stage of a batch, as on machines of
their own; *in memory*: the same without a limit. *State*: of the joiner that has most. Load {load:.0f}.

| z | operator | seconds | in memory | × | state, MB | by the memory | rows |
|--:|---|--:|--:|--:|--:|--:|--:|
"""
QUARTER = """
One joiner, with a quarter of the memory that its state takes, EQ7 at scale {scale:g}:

| join | reads state | s per 1,000 tuples | in memory | × |
|---|---|--:|--:|--:|
"""


@dataclass(frozen=True)
class Ended:
    """What a joiner took: bytes of its state, and at most of other memory."""

    state: int
    other: int


def serve(plan: Plan, number: int, folder: Path, limit: int | None, pipe: Connection) -> None:
    """Be a joiner: apply the messages of stages to its state, until there are none."""
    group = GROUPS / f"{os.getpid()}"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text(str(os.getpid()))
    if limit is not None:
        (group / "memory.limit_in_bytes").write_text(str(limit))
    runs, store = PartitionStages(plan, number).runs, Store(store_layout(plan), MappedStorage(folder / str(number)))
    while (given := pipe.recv()) is not None:
        stage, messages = given
        began = perf_counter()
        output = runs[stage](store, messages)
        pipe.send((output, perf_counter() - began))
    most = int((group / "memory.max_usage_in_bytes").read_text())
    cached = int((group / "memory.stat").read_text().split()[1])  # NB: its first line is `cache BYTES`
    state = sum(pool["bytes"] for pool in store.usage().values())
    pipe.send(Ended(state, most - cached))


class Joiner:
    """A joiner in a process of its own."""

    def __init__(self, plan: Plan, number: int, folder: Path, limit: int | None) -> None:
        self._pipe, other = multiprocessing.Pipe()
        fork = multiprocessing.get_context("fork")
        self._process = fork.Process(target=serve, args=(plan, number, folder, limit, other), daemon=True)
        self._process.start()
        other.close()
        self.seconds = list[float]()  # of the stages since it was emptied

    def apply(self, stage: int, messages: Sequence[bytes]) -> bytes:
        """Apply messages; EOFError if the process was killed, as one without room for anything else is."""
        self._pipe.send((stage, [*messages]))
        output, seconds = self._pipe.recv()
        self.seconds.append(seconds)
        return bytes(output)

    def end(self) -> Ended:
        """End the process."""
        self._pipe.send(None)
        ended = self._pipe.recv()
        self._process.join()
        (GROUPS / str(self._process.pid)).rmdir()
        assert isinstance(ended, Ended)
        return ended


class OutOfCore(PartitionedEngine):
    """Partitions in processes of their own, which may take so much memory each."""

    SPLITS = 1

    def __init__(self, partitions: int, folder: Path, limit: int | None, operator: str) -> None:
        super().__init__(partitions, join_operator=operator)
        self._disk, self._limit, self.seconds = folder, limit, 0.0

    def _open(self, input: Input) -> None:
        super()._open(input)
        plan = self._compiled.plan
        self.joiners = [Joiner(plan, number, self._disk, self._limit) for number in range(plan.partitions)]
        nodes = zip(self.joiners, self._nodes, strict=True)
        self._nodes = [(_stages(joiner, plan), store) for joiner, (_, store) in nodes]

    def push(self, rows: dict[str, pa.Table]) -> pa.Table:
        for joiner in self.joiners:
            joiner.seconds.clear()
        changes = super().push(rows)
        self.seconds += sum(map(max, zip(*(joiner.seconds for joiner in self.joiners), strict=True)))
        return changes


def _stages(joiner: Joiner, plan: Plan) -> Any:
    def run(stage: int) -> Any:
        return lambda _, messages: joiner.apply(stage, messages)

    return [run(stage) for stage in range(plan.stages_of_partitions)]


@dataclass(frozen=True)
class Measured:
    """A run: its seconds, tuples, printed rows, and what its joiners took."""

    seconds: float
    tuples: int
    rows: int
    ended: tuple[Ended, ...]

    @property
    def state(self) -> int:
        """The bytes of the largest state."""
        return max(each.state for each in self.ended)

    @property
    def other(self) -> int:
        """The bytes that a joiner takes besides, at most."""
        return max(each.other for each in self.ended)


def run(text: str, batches: Iterable[Batch], engine: OutOfCore, counted_from: int = 0) -> Measured:
    """Run a script over batches, of which the first are not counted."""
    tuples = rows = 0
    with TemporaryDirectory(dir="/dev/shm") as folder:
        engine.start(text, Path(folder), {})
        for number, batch in enumerate(batches):
            if number == counted_from:
                engine.seconds, tuples = 0.0, 0
            rows += len(engine.push(batch))
            tuples += sum(map(len, batch.values()))
        return Measured(engine.seconds, tuples, rows, tuple(joiner.end() for joiner in engine.joiners))


def warm(text: str, batches: Iterable[Batch], operator: str, joiners: int) -> None:
    """Run a script in this process."""
    engine = PartitionedEngine(joiners, join_operator=operator)
    with TemporaryDirectory(dir="/dev/shm") as folder:
        engine.start(text, Path(folder), {})
        for batch in batches:
            engine.push(batch)


def equal_batches(folder: Path, size: int) -> Iterator[Batch]:
    """Rows of lineitem with those of suppliers, which are a part of each batch."""
    l1, suppliers = pq.read_table(folder / "l1.parquet"), pq.read_table(folder / "supplier7.parquet")
    some = len(suppliers) * size // len(l1) + 1
    for number, start in enumerate(range(0, len(l1), size)):
        with_it = {"supplier7": suppliers.slice(number * some, some)} if number * some < len(suppliers) else {}
        yield {"l1": l1.slice(start, size), **with_it}


def theta_batches(rows: int, size: int) -> Iterator[Batch]:
    """A large side, then a few tuples that are compared with all of it."""
    draw = np.random.default_rng(1)
    for start in range(0, rows, size):
        b = draw.integers(0, 1 << 40, size)
        yield {"s": pa.table({"id": np.arange(start, start + size), "b": b, "c": b % 7})}
    for start in range(0, 12, 2):
        yield {"r": pa.table({"a": np.arange(start, start + 2), "d": np.arange(2)})}


class Disk:
    """A folder on a disk, empty for each run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "squallpy-out-of-core"

    def engine(self, joiners: int, operator: str, limit: int | None = None) -> OutOfCore:
        """Make an engine with nothing on its disk."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        return OutOfCore(joiners, self._folder, limit, operator)

    def close(self) -> None:
        """Delete what the last run has left."""
        shutil.rmtree(self._folder, ignore_errors=True)


def table_2(given: argparse.Namespace, disk: Disk) -> Iterator[str]:
    """Yield the lines of each operator at each skew."""
    even = run(
        script("eq7", at := skewed(given.scale, 0)),
        equal_batches(at, given.batch_rows),
        disk.engine(given.joiners, "SHJ"),
    )
    memory = int(given.spare * sum(each.state for each in even.ended) / given.joiners)
    shape = {"scale": given.scale, "joiners": given.joiners, "batch_rows": given.batch_rows, "spare": given.spare}
    yield HEAD.format(**shape, memory=memory / 1e6, load=os.getloadavg()[0])
    for operator in BINARY_OPERATORS:  # NB: kernels loaded here are there in processes that fork
        warm(script("eq7", at), islice(equal_batches(at, given.batch_rows), 3 * WARM), operator, given.joiners)
    for z in given.zipf:
        text, folder = script("eq7", skewed(given.scale, z)), skewed(given.scale, z)
        for operator in BINARY_OPERATORS:
            free = run(text, equal_batches(folder, given.batch_rows), disk.engine(given.joiners, operator))
            limit = free.other + ROOM + memory
            short = run(text, equal_batches(folder, given.batch_rows), disk.engine(given.joiners, operator, limit))
            assert short.rows == free.rows, f"{operator} at z = {z:g}: {short.rows:,} rows, in memory {free.rows:,}"
            times = f"{short.seconds:.1f} | {free.seconds:.1f} | {short.seconds / free.seconds:.1f}"
            sizes = f"{free.state / 1e6:.0f} | {free.state / memory:.2f}"
            yield f"| {z:g} | {operator} | {times} | {sizes} | {short.rows:,} |\n"


def quarter(given: argparse.Namespace, disk: Disk) -> Iterator[str]:
    """Yield the lines of one joiner with a quarter of the memory that its state takes."""
    yield QUARTER.format(scale=given.quarter_scale)
    rows, size, folder = 1_500_000, 50_000, skewed(given.quarter_scale, 0)
    cases: Mapping[str, tuple[str, str, Any, int]] = {
        "EQ7": ("at random", script("eq7", folder), lambda: equal_batches(folder, given.batch_rows), 0),
        "of all, `(r.a + s.b) % 7 <> s.c`": ("in order", THETA, lambda: theta_batches(rows, size), rows // size),
    }
    for name, (how, text, batches, first) in cases.items():
        free = run(text, batches(), disk.engine(1, "auto"), first)
        short = run(text, batches(), disk.engine(1, "auto", free.other + ROOM + free.state // 4), first)
        assert short.rows == free.rows
        times = [1000 * each.seconds / each.tuples for each in (short, free)]
        yield f"| {name} | {how} | {times[0]:.3f} | {times[1]:.3f} | {times[0] / times[1]:.1f} |\n"


def main() -> None:
    about = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m bench.joins.out_of_core", description=__doc__, formatter_class=about
    )
    parser.add_argument("--scale", type=float, default=0.25)
    parser.add_argument("--zipf", type=lambda text: [float(z) for z in text.split(",")], default=[0.0, 0.5, 1.0])
    parser.add_argument("--joiners", type=int, default=8)
    parser.add_argument("--batch-rows", type=int, default=10_000)
    parser.add_argument("--spare", type=float, default=1.25)
    parser.add_argument("--quarter-scale", type=float, default=0.25)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "results" / "joins-out-of-core.md")
    given = parser.parse_args()
    if not os.access(GROUPS.parent, os.W_OK):
        raise SystemExit(f"{GROUPS.parent} cannot be written: memory cgroups (v1), and root, are needed")
    disk, text = Disk(given.folder), ""
    for part in (table_2, quarter):
        for line in part(given, disk):
            print(line, end="", flush=True)
            given.out.write_text(text := text + line)
    disk.close()


if __name__ == "__main__":
    main()
