"""Step tests of windows with their query put together by hand, under each choice of partitioning."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from squallpy.plans import Aggregate, Component, DataSource, EquiJoin, Project, Sink, ThetaJoin, Window
from squallpy.plans.plan_session import PlanSession
from squallpy.testing.engines import KilledEngine, LocalEngine, MemoryEngine, PartitionedEngine
from squallpy.testing.step_tests import list_step_tests, run_steps

CHANGES = {"op": "__op"}
Choice = Mapping[str, Any]


def stream(name: str, time: str, delay: str | None = None, **columns: str) -> DataSource:
    schema = columns | {time: "TIMESTAMP"}
    return DataSource(name, f"{name}.csv", schema, timestamp_by=time, delay=delay, options=CHANGES)


def orders_delivered(choice: Choice) -> Component:
    o = stream("o", "placed", k="INT", p="INT")
    schema = {"k": "INT", "done": "TIMESTAMP", "city": "VARCHAR"}
    d = DataSource("d", "d.csv", schema, timestamp_by="done", delay="5 SEC", options=CHANGES)
    joined = EquiJoin(o, "k", d, "k", **choice)
    return Project(Window(joined, "RANGE 30 SEC"), "o.k", "o.p", "d.city")


def band(choice: Choice) -> Component:
    b, a = (stream(name, "ts", price="INT") for name in "ba")
    pairs = ThetaJoin(b, a, "a.price BETWEEN b.price - 2 AND b.price + 2", **choice)
    windowed = Window(pairs, "RANGE 10 SEC SLIDE 5 SEC")
    return Aggregate(windowed, by="b.price", n="COUNT(*)", total="SUM(a.price)")


def run(name: str, plan: Component, engine: MemoryEngine, folder: Path) -> None:
    engine.open_session = lambda path, settings: PlanSession([Sink(plan)], settings)
    run_steps(list_step_tests()[name], engine, folder)


@pytest.mark.parametrize("choice", [{}, {"partitioning": "hash", "parallelism": 2}, {"partitioning": "broadcast(d)"}])
def step_windows_join(choice: Choice, tmp_path: Path) -> None:
    for number, engine in enumerate((LocalEngine(), PartitionedEngine(3), KilledEngine(3))):
        folder = tmp_path / str(number)
        folder.mkdir()
        run("windows_join", orders_delivered(choice), engine, folder)


@pytest.mark.parametrize(
    "choice",
    [{}, {"partitioning": "broadcast(a)"}, {"operator": "Dynamic"}, {"operator": "StaticMid", "parallelism": 2}],
)
def step_windows_band(choice: Choice, tmp_path: Path) -> None:
    for number, engine in enumerate((LocalEngine(), PartitionedEngine(4))):
        folder = tmp_path / str(number)
        folder.mkdir()
        run("windows_band", band(choice), engine, folder)
