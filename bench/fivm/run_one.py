"""One system on one stream in a process of its own: python -m bench.fivm.run_one TASK-AS-JSON

The last line on stdout is the result as JSON; times are processor time.
"""

import gc
import json
import os
import statistics
import sys
from dataclasses import asdict, dataclass
from time import process_time
from typing import Any

import numpy as np

from bench.data.queries import Query
from bench.data.tables import Stream
from bench.engines import ON_SPARK, REEVALUATING, Engine, open_engine
from bench.fivm import native
from bench.fivm.answers import moments, of_answer
from bench.fivm.constant_mix import growth
from bench.fivm.data import Dataset
from bench.fivm.queries import FORMS, declarations
from bench.fivm.schemas import SCHEMAS, Schema
from bench.measure.batches import Watch, sum_of
from bench.throughput.run_one import WARM_BATCHES, figures, whole
from squallpy.base.errors import SquallError

TURNS = "round-robin"
LONG = 10  # a run that takes this part of its budget is not repeated


@dataclass(frozen=True)
class Task:
    """A system: `native`, `native-march`, or a form of the query and an engine, as in `fsql/duckdb`."""

    system: str
    schema: str
    scale: float
    share: float
    order: str
    deletes: float
    seed: int
    batch_rows: int
    repeats: int = 1
    samples: int = 20
    budget: float = 300.0

    @property
    def dataset(self) -> Dataset:
        return Dataset(SCHEMAS[self.schema], self.scale, self.share, self.order, self.deletes, self.seed)

    @property
    def stream(self) -> Stream:
        """The stream with the query in the system's form, which is written beside the tables."""
        form, folder = self.system.split("/")[0], self.dataset.cached()
        form = form if form in FORMS else "fsql"
        script = folder / f"{form}.sql"
        script.write_text(declarations(self.dataset.schema, self.deletes > 0) + FORMS[form](self.dataset.schema))
        return Stream(Query(form, script), folder, self.batch_rows, TURNS)


def measure(task: Task) -> dict[str, Any]:
    """Run a system as often as the task says; return the figures of the median run, and its answer's matrix."""
    stream, load = task.stream, os.getloadavg()[0]
    try:
        done = _native(task, stream) if task.system in native.FLAGS else _engine(task, stream)
    except (SquallError, native.NotAStar) as error:
        return asdict(task) | {"refused": str(error).strip().splitlines()[0]}
    return asdict(task) | {"tuples": stream.replay.total, "load": load, "load_after": os.getloadavg()[0]} | done


def settled(schema: Schema, stream: Stream) -> int:
    """Return the first batch after each key has come in each relation, 0 if that is late in the stream."""
    rows = dict[str, int]()
    for relation, columns in schema.columns.items():
        table = stream.tables[relation]
        keys = [np.asarray(table[column]) for column in columns if column in schema.join_variables]
        rows[relation] = max(int(np.unique(key, return_index=True)[1].max()) + 1 for key in keys)
    every = range(stream.batches // 2)
    return next((b for b in every if all(stream.replay.ranges(b)[name][0] >= row for name, row in rows.items())), 0)


def _native(task: Task, stream: Stream) -> dict[str, Any]:
    schema = task.dataset.schema
    done = native.run(schema, stream, task.repeats, native.FLAGS[task.system])
    first = settled(schema, stream)
    runs = [Watch(first=first, seconds=dict(enumerate(map(float, row)))) for row in done.seconds]
    found = moments(done.features, done.root, schema.features)
    memory = {"views": done.nbytes, "read_bytes": stream.nbytes(dict(schema.columns))}
    found_growth = {"growth": growth(stream, [run.seconds for run in runs], first)}
    return figures(stream, _middle(runs, stream)) | memory | found_growth | {"moments": found.tolist()}


def _engine(task: Task, stream: Stream) -> dict[str, Any]:
    engine, clock = _open(task), process_time
    samples = task.samples if task.system.split("/")[1] in REEVALUATING else None
    assert stream.tables  # decoded before anything is measured
    start = clock()
    engine.run(stream, Watch(limit=1, clock=clock))
    first = clock() - start
    engine.run(stream, Watch(limit=WARM_BATCHES, samples=samples, clock=clock))
    runs, answer, after = list[Watch](), None, settled(task.dataset.schema, stream)
    while len(runs) < task.repeats and sum(map(sum_of, runs)) < task.budget / LONG:
        runs.append(Watch(first=after, samples=samples, budget=task.budget, clock=clock))
        answer = engine.run(stream, runs[-1])
        gc.collect()
    engine.close()
    middle = _middle(runs, stream)
    out: dict[str, Any] = figures(stream, middle) | {"extrapolated": len(middle.seconds) < stream.batches}
    out["growth"] = growth(stream, [run.seconds for run in runs], after)
    if answer is not None:
        out["moments"] = of_answer(task.dataset.schema.features, answer).tolist()
    if views := engine.facts.get("views"):
        out |= {"views": sum(views.values()), "read_bytes": engine.facts["read_bytes"], "first": first}
    return out | {"version": engine.version}


def _open(task: Task) -> Engine:
    _, name = task.system.split("/")
    if name in ON_SPARK:
        raise SystemExit(f"bench: {name} works in other processes, whose processor time is not measured")
    engine = open_engine(name)
    if name == "duckdb":
        engine.config = {"threads": 1}  # type: ignore[attr-defined]
    return engine


def _middle(runs: list[Watch], stream: Stream) -> Watch:
    totals = [whole(watch, stream.batches) for watch in runs]
    return runs[totals.index(statistics.median_low(totals))]


if __name__ == "__main__":
    print(json.dumps(measure(Task(**json.loads(sys.argv[1])))))
