"""Step tests of view trees where the rows of all relations are known."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from squallpy.testing.engines import MemoryEngine
from squallpy.testing.step_tests import list_step_tests, run_steps
from tests.marks import long
from tests.steps.known_sizes import KnownKilled, KnownLocal, KnownMoved, KnownPartitioned, KnownSpark, KnownVolatile

FILES = {name: path for name, path in list_step_tests().items() if "factorised" in path.parts}
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "durable": KnownLocal,
    "plain": partial(KnownVolatile, optimizer=False),
    "two partitions": partial(KnownPartitioned, 2),
    "three partitions, killed": partial(KnownKilled, 3),
    "killed, then on others": partial(KnownMoved, 3, kills=0.05),
    "one statement a stage": partial(KnownPartitioned, 3, fusion=False),
}
COMPILED = ("cofactor_snowflake", "cofactor_ten_times", "cofactor_triangle", "cofactor_self_join_apart")


def engine_of(name: str) -> str:
    """Choose the engine of a file in `make test`; on the others it runs by `make long`."""
    return list(ENGINES)[crc32(name.encode()) % len(ENGINES)]


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        pytest.param(name, engine, id=f"{name}-{engine}", marks=[] if engine == engine_of(name) else pytest.mark.long)
        for name in FILES
        for engine in ENGINES
    ],
)
def step_known_sizes(name: str, engine: str, tmp_path: Path) -> None:
    run_steps(FILES[name], ENGINES[engine](), tmp_path)


@pytest.mark.parametrize("name", COMPILED)
def step_known_sizes_compiled(name: str, tmp_path: Path) -> None:
    run_steps(FILES[name], KnownLocal(compile="wait"), tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("name", [COMPILED[0], *map(long, COMPILED[1:])])
def step_known_sizes_on_spark(name: str, tmp_path: Path, cluster: Any) -> None:
    run_steps(FILES[name], KnownSpark(cluster, 3), tmp_path)
