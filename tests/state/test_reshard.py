"""State that moves to the partitions of another plan, without its input: the answers stay, whatever joins adapt to."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.settings import Settings
from squallpy.catalog.relation import MULT
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import MovedEngine, PartitionedEngine
from tests.kept import StopWhenIdle
from tests.state.test_endless_streams import World

STREAMS = """
CREATE STREAM r (k BIGINT, a VARCHAR) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (k BIGINT, b BIGINT) USING csv OPTIONS (path 's', op 'op');
"""
EQUAL = f"{STREAMS} SELECT a, COUNT(*) AS n, SUM(b) AS total FROM r JOIN s ON r.k = s.k GROUP BY a;"
BAND = f"{STREAMS} SELECT a, b FROM r JOIN s ON r.k BETWEEN s.k - 2 AND s.k + 2;"


def rows(random: np.random.Generator, count: int, hot: float, second: str, sign: int = 1) -> pa.Table:
    """Tuples of which a share has one key, 7."""
    key = np.where(random.random(count) < hot, 7, random.integers(0, 1000, count))
    values = random.integers(0, 30, count)
    column = pa.array([f"a {v}" for v in values]) if second == "a" else pa.array(values)
    return pa.table({"k": key, second: column, MULT: np.full(count, sign)})


@pytest.mark.parametrize(("script", "operator"), [(EQUAL, "Hybrid"), (BAND, "Dynamic"), (BAND, "auto")])
def differential_while_joins_adapt(script: str, operator: str, tmp_path: Path) -> None:
    """Between any two batches: keys have a grid or move, grids are copied, and hand-offs are on their way."""
    engines = MovedEngine(4, join_operator=operator, kills=0.0), PartitionedEngine(2, join_operator="SHJ")
    for number, engine in enumerate(engines if script == EQUAL else engines[:1]):
        (tmp_path / str(number)).mkdir()
        engine.start(script, tmp_path / str(number), {})
    if script == BAND:
        plain = PartitionedEngine(1)
        (tmp_path / "plain").mkdir()
        plain.start(script, tmp_path / "plain", {})
        engines = engines[0], plain
    random, moving = np.random.default_rng(3), 0
    for number, hot in enumerate((0.0, 0.6, 0.6, 0.0, 0.9, 0.9, 0.3, 0.0, 0.5, 0.0, 0.0, 0.0)):
        few, many = (60, 400) if number < 6 else (500, 20)
        if script == BAND:
            few, many, hot = few // 4, many // 4, hot / 4
        batch = {"r": rows(random, many, hot, "a", -1 if number in (6, 7) else 1), "s": rows(random, few, hot, "b")}
        assert not difference(*(engine.push(batch) for engine in engines))
        coordinator = engines[0]._coordinator
        assert coordinator
        moving += coordinator.policy is not None and type(coordinator.policy.plan).__name__ == "Copying"
        moving += bool(coordinator.policy and getattr(coordinator.policy.plan, "arriving", None))
        if number % 3 != 1:
            engines[0].restart()
        assert not difference(*(engine.result() for engine in engines))
    assert engines[0].moves == 8 and moving


def fault_killed_while_state_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The generation before is in force until the next one is whole."""
    engine, plain = MovedEngine(3, kills=0.0), PartitionedEngine(2)
    for number, each in enumerate((engine, plain)):
        (tmp_path / str(number)).mkdir()
        each.start(EQUAL, tmp_path / str(number), {})
    random, write = np.random.default_rng(1), StateLocation.write
    for at in range(5):
        batch = {"r": rows(random, 50, 0.3, "a"), "s": rows(random, 50, 0.0, "b")}
        assert not difference(engine.push(batch), plain.push(batch))
        left = [at]

        def dying(*arguments: Any, left: list[int] = left, **named: Any) -> None:
            left[0] -= 1
            if left[0] < 0:
                raise InterruptedError
            write(*arguments, **named)

        compiled = engine._compiled
        monkeypatch.setattr(StateLocation, "write", dying)
        try:
            engine.restart()
        except InterruptedError:
            monkeypatch.setattr(StateLocation, "write", write)
            engine._compiled, engine._moved_from = compiled, None
            engine.restart()
        monkeypatch.setattr(StateLocation, "write", write)
        assert not difference(engine.result(), plain.result())


@pytest.mark.spark
def test_streams_without_end(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were read have gone; the state goes from this process to Spark, to more partitions, and back."""
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = World(tmp_path)
    for number, (backend, partitions) in enumerate([("local", 1), ("spark", 2), ("spark", 3), ("local", 1)]):
        world.append(f"r/{number}.csv", [f"{k},{number}" for k in range(5)])
        world.append(f"s/{number}.csv", [f"{k},{k}" for k in range(5)])
        settings = Settings(local_dir=str(tmp_path / "local"), partitions=partitions)
        options = RunOptions(backend, batch_rows=4, changes=True, checkpoint=str(tmp_path / "kept"))
        ScriptSession(tmp_path / "q.sql", settings).run(options, world.sink, StopWhenIdle())
        world.check()
        (tmp_path / f"r/{number}.csv").unlink()
        (tmp_path / f"s/{number}.csv").unlink()
