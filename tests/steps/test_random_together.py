"""Random queries in one script: what each prints after every batch is what it prints alone, on every executor."""

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.testing.compare_rows import difference
from squallpy.testing.engines import LocalEngine, MemoryEngine, MovedEngine, PartitionedEngine, VolatileEngine
from squallpy.testing.generators import Case, cases
from squallpy.testing.step_tests import parse_batch, read_steps
from tests.marks import long

ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "local": VolatileEngine,
    "plain": partial(VolatileEngine, optimizer=False),
    "durable": LocalEngine,
    "three partitions": partial(PartitionedEngine, 3),
    "killed, then on others": partial(MovedEngine, 2, kills=0.05),
}

OVER = (  # queries over another one, as over a view
    "SELECT * FROM ({}) q LIMIT 3;",
    "SELECT COUNT(*) AS n FROM ({}) q;",
    "SELECT DISTINCT * FROM ({}) q;",
    "SELECT q.* FROM ({}) q, r0 WHERE r0.c0 IS NOT NULL;",
)
LONG = ("plain", "durable", "three partitions")  # only by `make long`


@pytest.mark.parametrize("name", [long(name) if name in LONG else name for name in ENGINES])
@settings(max_examples=max(1, settings().max_examples // 10), suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(count=3), seed=st.integers(0, 99))
def differential_random_queries_together(name: str, case: Case, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.slt"
        path.write_text(case.text())
        steps = read_steps(path)
        *streams, one, two, three = steps.script.splitlines()
        again = (one, two, three)[seed % 3]
        queries = [one, two, three, again, OVER[seed % len(OVER)].format(again.removesuffix(";"))]
        try:
            together = start(ENGINES[name](), [*streams, *queries], Path(folder) / "all")
            alone = [start(VolatileEngine(), [*streams, q], Path(folder) / str(i)) for i, q in enumerate(queries)]
        except SquallError as error:
            if error.code != "SQ3001":
                raise
            reject()
        for section in steps.sections:
            batch = parse_batch(section, together.relations)
            try:
                wanted = [engine.push(batch) for engine in alone]
            except SquallError:  # such as a sum that is too large
                reject()
            found = together.push_all(batch)
            assert not [wrong for pair in zip(found, wanted, strict=True) if (wrong := difference(*pair))]
            results = zip(together.results(), (engine.result() for engine in alone), strict=True)
            assert not [wrong for pair in results if (wrong := difference(*pair))]


def start(engine: MemoryEngine, lines: Sequence[str], folder: Path) -> MemoryEngine:
    """Start a script on an engine."""
    folder.mkdir()
    engine.start("\n".join(lines), folder, {})
    return engine
