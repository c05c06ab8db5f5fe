"""Spools: rows that cannot be read twice are safe before a batch reads them, and go when that is durable."""

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept, StopWhenIdle
from tests.sources.test_python_source import World

COLUMNS = "STREAM r (key INT, value VARCHAR)"


def generator(folder: Path, name: str = "generated") -> World:
    """A generator over the lines of a file, from the first on that is not safe."""
    world = World(folder, name, relation=COLUMNS)
    world.script = world.script.replace("class ", "generator ")
    return world


@settings(deadline=None, max_examples=max(5, settings().max_examples // 10))
@given(seed=st.integers(0, 1 << 30))
def property_a_generator_is_read_once(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Whatever has been spooled when a run is killed is in the answer, once; the generator goes on behind it."""
    random = Random(seed)
    world = generator(tmp_path_factory.mktemp("world"))
    for _ in range(4):
        world.append(*(f"{random.randrange(4)},{random.randrange(100)}" for _ in range(random.randrange(12))))
        run_to_end(world, random.choice([1, 3, 100]), random.choice([None, 0, 1, 2]))
        world.check()


def run_to_end(world: World, batch_rows: int, dies_at: int | None = None) -> None:
    """Run until the generator has ended, which takes a moment."""
    world.stop = Waiting
    world.run(batch_rows, dies_at)


class Waiting(StopWhenIdle):
    """A wish that never comes."""

    def wait(self, timeout: float | None = None) -> bool:
        return super(StopWhenIdle, self).wait(0.001)


def spool(world: World) -> list[str]:
    return sorted(os.listdir(world.folder / "kept" / "spool"))


def test_a_spool_is_as_long_as_a_batch(tmp_path: Path) -> None:
    """Its last file stays, by which a resumed run knows where the source was."""
    world = World(tmp_path, "Lines spooled")
    for number in range(3):
        world.append(*(f"{key},x" for key in range(5)))
        world.run(batch_rows=2)
        world.check()
        (file,) = spool(world)
        assert file.endswith(f"-{5 * number}")
    assert (tmp_path / "lines.done").read_text() == "15", "the source may forget what is spooled"


def fault_a_damaged_spool(tmp_path: Path) -> None:
    world = World(tmp_path, "Lines spooled")
    world.append("1,a", "1,b")
    world.run()
    (file,) = spool(world)
    path = tmp_path / "kept" / "spool" / file
    data = bytearray(path.read_bytes())
    data[20] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(SquallError, match=f"SQ6005 .*{file} damaged"):
        world.run()


def test_without_a_checkpoint_rows_are_kept_in_memory(tmp_path: Path) -> None:
    world = generator(tmp_path)
    world.append(*(f"{key % 3},{key}" for key in range(10)))
    sink = Kept()
    ScriptSession(tmp_path / "q.sql", None, world.script).run(RunOptions("local", changes=True, batch_rows=4), sink)
    world.sink = sink
    world.check()


def test_rows_of_a_source_are_numbered(tmp_path: Path) -> None:
    """… for windows over rows: they come from a spool, which knows their numbers."""
    world = World(tmp_path, "LimitedLines")
    world.append(*(f"{key},{key}" for key in range(20)))
    world.script = world.script.partition(";")[0] + ";\nSELECT COUNT(*) AS n, MIN(key) AS k FROM r ROWS 7;"
    world.run(batch_rows=5)
    assert world.sink.rows == [str({"n": 7, "k": 13})]


def fault_a_generator_that_raises(tmp_path: Path) -> None:
    """Its rows come first."""
    world = generator(tmp_path, "failing")
    world.stop = Waiting
    with pytest.raises(SquallError, match=r"SQ4008 .*lines_source.failing raised RuntimeError in latest: the feed is"):
        world.run()
    assert world.sink.kept_rows == [str({"key": 1, "n": 2, "m": "b"})]


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        ("USING csv OPTIONS (path 'x', spool 'true')", 'SQ7002 .* option "spool" is not for csv: files can be read'),
        (
            "USING python OPTIONS (generator 'json.dmps')",
            'SQ7002 .* the module json has no "dmps", did you mean "dumps"',
        ),
        ("USING python OPTIONS (spool 'true')", 'SQ7002 .* "r" has no class'),
        ("USING python OPTIONS (generator 'json.__name__')", "SQ7002 .* json.__name__ is no function"),
    ],
)
def fault_no_spool(script: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=fault):
        text = f"CREATE STREAM r (k INT) {script}; SELECT k FROM r;"
        ScriptSession(tmp_path / "q.sql", None, text).run(RunOptions("local"), Kept(), StopWhenIdle())


@pytest.mark.spark
def test_a_generator_on_spark(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    world = generator(tmp_path)
    world.backend = "spark"
    for number in range(3):
        world.append(*(f"{key % 3},{number}{key}" for key in range(7)))
        run_to_end(world, 4, dies_at=1 if number == 1 else None)
        world.check()
