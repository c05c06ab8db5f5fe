"""Random plans of joins and aggregates with random choices: on partitions what they are in one process, or refused."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.plans import Aggregate, Component, EquiJoin, Select, ThetaJoin
from squallpy.testing.engines import MemoryEngine, MovedEngine, PartitionedEngine, VolatileEngine
from tests.plans.test_choices import Choice, answers, r, s, t

ANY_JOIN: tuple[Choice, ...] = (
    {}, {"partitioning": "broadcast(left)"}, {"partitioning": "broadcast(right)"}, {"partitioning": "grid"},
    {"operator": "Dynamic", "parallelism": 2}, {"operator": "StaticOpt", "parallelism": 3},
)  # fmt: skip
EQUI_JOIN: tuple[Choice, ...] = (
    *ANY_JOIN, {"partitioning": "hash"}, {"operator": "SHJ", "parallelism": 2}, {"parallelism": 1},
    {"operator": "Hybrid"},
)  # fmt: skip
GROUPS: tuple[Choice, ...] = (
    {}, {"partitioning": "hash", "parallelism": 2}, {"partitioning": "broadcast"}, {"partitioning": "single"},
)  # fmt: skip
ENGINES: tuple[Callable[[], MemoryEngine], ...] = (lambda: PartitionedEngine(4), lambda: MovedEngine(4, kills=0.1))


def columns_of(component: Component) -> list[str]:
    return [f"{source.name}.{column.name}" for source in component.check().scope.sources for column in source.columns]


def random_input(draw: Random, source: Component) -> Component:
    """A stream, some of its rows, or groups of it."""
    one, other = draw.sample(columns_of(source), 2)
    kind = draw.choice(["rows", "rows", "some", "groups"])
    if kind == "some":
        return Select(source, f"{one} {draw.choice(['<', '>', '<>'])} {draw.randrange(5)}")
    if kind == "groups":
        value = draw.choice(["COUNT(*)", f"SUM({other})", f"MAX({other})"])
        return Aggregate(source, by=one, name=f"g{source.name}", v=value, **draw.choice(GROUPS))
    return source


def random_join(draw: Random, left: Component, right: Component, name: str) -> Component:
    ours, theirs = (draw.choice(columns_of(each)) for each in (left, right))
    is_equi = draw.random() < 0.6
    choice: dict[str, Any] = dict(draw.choice(EQUI_JOIN if is_equi else ANY_JOIN))
    if "broadcast" in choice.get("partitioning", ""):
        choice["partitioning"] = f"broadcast({draw.choice([left, right]).name})"
    if is_equi:
        return EquiJoin(left, ours, right, theirs, name=name, **choice)
    on = draw.choice([f"{ours} < {theirs}", f"ABS({ours} - {theirs}) <= 1", f"{ours} <> {theirs}"])
    return ThetaJoin(left, right, on, name=name, **choice)


def random_plan(draw: Random) -> Component:
    inputs = [random_input(draw, source) for source in draw.sample([r(), s(), t()], draw.choice([2, 3]))]
    while len(inputs) > 1:
        left, right = (inputs.pop(draw.randrange(len(inputs))) for _ in range(2))
        inputs.append(random_join(draw, left, right, f"j{len(inputs)}"))
    (plan,) = inputs
    columns = columns_of(plan)
    if draw.random() < 0.7:
        by = draw.sample(columns, draw.choice([0, 1, 2]))
        return Aggregate(plan, by=by, n="COUNT(*)", x=f"SUM({draw.choice(columns)})")
    return plan


@settings(max_examples=settings().max_examples // 4)
@given(st.integers(0, 2**32), st.sampled_from(ENGINES))
def property_random_plans(seed: int, create: Callable[[], MemoryEngine]) -> None:
    with TemporaryDirectory() as folder:
        try:
            plan = random_plan(Random(seed))
            found = answers(create(), plan, Path(folder) / "some")
        except SquallError as error:
            assert error.code == "SQ7003", error
            return
        assert found == answers(VolatileEngine(), plan, Path(folder) / "one")
