"""Physical choices of components: right whatever is chosen, or refused; what is chosen is what the plan has."""

import json
import os
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.json_codec import from_json, to_json
from squallpy.base.settings import Settings
from squallpy.catalog.catalog import Catalog
from squallpy.catalog.relation import MULT
from squallpy.checkpoint_identity import Setup
from squallpy.physical.plan import Plan
from squallpy.plans import Aggregate, Component, DataSource, EquiJoin, Project, Sink, ThetaJoin
from squallpy.plans.plan_session import PlanSession
from squallpy.run_plans import Executor, RunPlanner
from squallpy.runtime.sources import open_source
from squallpy.runtime.sources.input import BatchSpans, Input
from squallpy.testing.engines import KilledEngine, MemoryEngine, MovedEngine, PartitionedEngine, VolatileEngine
from squallpy.testing.memory_source import PushedBatches

Choice = Mapping[str, Any]
CHANGES = {"op": "op"}
HASHED: tuple[Choice, ...] = (
    {},
    {"partitioning": "hash"},
    {"operator": "SHJ", "parallelism": 2},
    {"operator": "Hybrid"},
)
ANYHOW: tuple[Choice, ...] = (
    {"partitioning": "broadcast(left)"},
    {"partitioning": "broadcast(right)"},
    {"partitioning": "grid"},
    {"operator": "Dynamic", "parallelism": 3},
    {"operator": "StaticMid"},
)
EQUI = (*HASHED, *ANYHOW)
THETA = ({}, *ANYHOW)


def r() -> DataSource:
    return DataSource("r", "r.csv", {"a": "INT NOT NULL", "b": "INT NOT NULL"}, options=CHANGES)


def s() -> DataSource:
    return DataSource("s", "s.csv", {"b": "INT NOT NULL", "c": "INT NOT NULL"}, options=CHANGES)


def t() -> DataSource:
    return DataSource("t", "t.csv", {"c": "INT NOT NULL", "d": "INT NOT NULL"}, options=CHANGES)


def named(choice: Choice, left: Component, right: Component) -> dict[str, Any]:
    """Write the names of inputs into a choice."""
    return {
        key: value.replace("left", left.name).replace("right", right.name) if isinstance(value, str) else value
        for key, value in choice.items()
    }


def chain(first: Choice, second: Choice) -> Component:
    rs = EquiJoin(r(), "b", s(), "b", name="rs", **named(first, r(), s()))
    rst = EquiJoin(rs, "c", t(), "c", name="rst", **named(second, rs, t()))
    return Aggregate(rst, by="r.b", n="COUNT(*)", x="SUM(a * d)")


def rows(first: Choice, second: Choice) -> Component:
    rs = EquiJoin(r(), "b", s(), "b", name="rs", **named(first, r(), s()))
    return EquiJoin(rs, "c", t(), "c", name="rst", **named(second, rs, t()))


def band(first: Choice, second: Choice) -> Component:
    rs = ThetaJoin(r(), s(), "ABS(r.b - s.b) <= 1", name="rs", **named(first, r(), s()))
    return Aggregate(EquiJoin(rs, "c", t(), "c", name="rst", **named(second, rs, t())), by="d", n="COUNT(*)")


def twice() -> Component:
    other = DataSource("r", "r.csv", {"a": "INT NOT NULL", "b": "INT NOT NULL"}, options=CHANGES, name="r2")
    return ThetaJoin(r(), other, "r.a < r2.b", operator="Dynamic")


def three(first: Choice, second: Choice) -> Component:
    rs = ThetaJoin(r(), s(), "r.b < s.b", name="rs", **named(first, r(), s()))
    rst = ThetaJoin(rs, t(), "s.c <= t.c", name="rst", **named(second, rs, t()))
    return Aggregate(rst, by="a", n="COUNT(*)")


def groups(first: Choice, second: Choice) -> Component:
    few = Aggregate(s(), by=("b", "c"), n="COUNT(*)", name="few")
    rs = EquiJoin(r(), "b", few, "b", name="rs", **named(first, r(), few))
    return Aggregate(EquiJoin(rs, "few.c", t(), "c", name="rst", **named(second, rs, t())), by="n", x="SUM(a + d)")


PLANS: dict[str, tuple[Callable[[Choice, Choice], Component], tuple[Choice, ...], tuple[Choice, ...]]] = {
    "chain": (chain, EQUI, EQUI),
    "rows": (rows, EQUI, EQUI),
    "band": (band, THETA, EQUI),
    "three": (three, THETA, THETA),
    "groups": (groups, EQUI, EQUI),
}


def batches(seed: int = 3) -> Iterator[dict[str, pa.Table]]:
    draw, there = random.Random(seed), {"r": [], "s": [], "t": []}
    for _ in range(3):
        pushed = {}
        for name, columns in (("r", "ab"), ("s", "bc"), ("t", "cd")):
            came = [(draw.randrange(5), draw.randrange(5), 1) for _ in range(12)]
            gone = draw.sample(there[name], len(there[name]) // 3)
            there[name] = [row for row in there[name] if row not in gone] + [row[:2] for row in came]
            changes = [*came, *((*row, -1) for row in gone)]
            pushed[name] = pa.table(dict(zip([*columns, MULT], zip(*changes, strict=True), strict=True)))
        yield pushed


def answers(engine: MemoryEngine, plan: Component, folder: Path) -> list[list[tuple[int, ...]]]:
    folder.mkdir()
    sink = Sink(plan)
    engine.open_session = lambda path, settings: PlanSession([sink], settings)
    engine.start("", folder, {})
    pushed, found = [{name: batch[name] for name in sink.relations} for batch in batches()], []
    engine.expect(pushed)
    for batch in pushed:
        engine.push(batch)
        found.append(sorted(zip(*engine.result().to_pydict().values(), strict=True)))
    return found


def pairs(name: str) -> list[tuple[Choice, Choice]]:
    """Each choice for one join with the other by cost, and some for both; a third of them, but for `make long`."""
    _, firsts, seconds = PLANS[name]
    some = random.Random(name).sample(list(product(firsts, seconds)), 6)
    found = [*((first, {}) for first in firsts), *(({}, second) for second in seconds), *some]
    return found[:: 1 if "FUZZ" in os.environ else 3]


@pytest.mark.parametrize("name", PLANS)
def differential_whatever_is_chosen(name: str, tmp_path: Path) -> None:
    build, *_ = PLANS[name]
    expected = answers(VolatileEngine(), build({}, {}), tmp_path / "one")
    right = 0
    for number, (first, second) in enumerate(pairs(name)):
        try:
            found = answers(PartitionedEngine(4), build(first, second), tmp_path / str(number))
        except SquallError as error:
            assert error.code == "SQ7003" and ("Join rs" in error.message or "Join rst" in error.message), error
        else:
            assert found == expected, (first, second)
            right += 1
    assert right > len(pairs(name)) / 3


@pytest.mark.parametrize("create", [partial(KilledEngine, 4, kills=0.05), partial(MovedEngine, 4, kills=0.1)])
@pytest.mark.parametrize(
    "choice", [{"parallelism": 2}, {"operator": "Hybrid"}, {"operator": "Dynamic", "parallelism": 2}]
)
def differential_over_kills(create: Callable[[], MemoryEngine], choice: Choice, tmp_path: Path) -> None:
    """State that is on some of the partitions moves to others."""
    expected = answers(VolatileEngine(), rows({}, {}), tmp_path / "one")
    assert answers(create(), rows({}, choice), tmp_path / "killed") == expected


@pytest.mark.parametrize("choice", [{"partitioning": "hash"}, {"operator": "SHJ"}, {"partitioning": "grid"}])
def test_state_is_on_as_many_partitions_as_chosen(choice: Choice, tmp_path: Path) -> None:
    engine = PartitionedEngine(4)
    answers(engine, EquiJoin(r(), "b", s(), "b", parallelism=2, **choice), tmp_path / "two")
    held = [sum(len(store[view]) for view in ("M_R", "M_S")) for _, store in engine._nodes]
    assert min(held[:2]) > 0 and held[2:] == [0, 0]


def test_groups_of_an_aggregate(tmp_path: Path) -> None:
    few = Aggregate(s(), by=("b", "c"), n="COUNT(*)", name="few", partitioning="hash(b)", parallelism=2)
    plan = Aggregate(EquiJoin(r(), "b", few, "b", name="rs"), by="n", x="SUM(a)")
    engine = PartitionedEngine(4)
    expected = answers(VolatileEngine(), plan, tmp_path / "one")
    assert answers(engine, plan, tmp_path / "two") == expected
    text = Sink(plan).explain("physical", Settings(partitions=4))
    assert "COMPONENT Aggregate few of s: hash(b) on 2 partitions; M_S" in text and " by b over 2" in text


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (
            lambda: three({"operator": "StaticMid"}, {"operator": "Dynamic"}),
            "SQ7003 ThetaJoin rs: grid, StaticMid; ThetaJoin rst: grid, Dynamic: a plan has one grid, "
            "give them one operator and parallelism, or hash one of them",
        ),
        (
            lambda: three({}, {"partitioning": "broadcast(left)"}),
            "SQ7003 ThetaJoin rst: broadcast(rs): its state is M_T(c) alone, leave its partitioning out",
        ),
        (twice, "SQ7003 ThetaJoin r_r2: grid, Dynamic: both of its inputs are r, declare it twice, as two streams"),
    ],
    ids=["two grids", "nothing to broadcast", "one stream"],
)
def test_choices_that_cannot_be(plan: Callable[[], Component], message: str) -> None:
    """They are refused wherever the plan is to run, and named."""
    sink = Sink(plan())
    for partitions in (1, 4):
        with pytest.raises(SquallError) as refused:
            PlanSession([sink]).compile(sink.query(Catalog()), partitions, {})
        assert str(refused.value) == message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            Settings(join_operator="StaticMid"),
            "SQ7003 join.operator=StaticMid: ThetaJoin rs: operators of components are set, too, leave it out",
        ),
        (
            Settings(join_groups=True),
            "SQ7003 join.groups=on: a grid with a parallelism of its own neither grows nor has groups, "
            "leave one of them out",
        ),
    ],
    ids=["operator", "groups"],
)
def test_settings_that_contradict_choices(settings: Settings, message: str) -> None:
    session = PlanSession([Sink(band({"operator": "Dynamic", "parallelism": 2}, {}))], replace(settings, partitions=7))
    with pytest.raises(SquallError) as refused:
        session.explain("physical")
    assert str(refused.value) == message


def test_choices_are_kept_with_a_checkpoint() -> None:
    """The plan that state was written by is made again from the record of its settings."""
    settings = PlanSession([Sink(chain({"operator": "SHJ", "parallelism": 2}, {"partitioning": "grid"}))]).settings
    setup = Setup(settings, 3, late=False, final=True)
    assert from_json(Setup, json.loads(json.dumps(to_json(setup)))) == setup and len(settings.components) == 2


def test_a_component_is_an_input_several_times(tmp_path: Path) -> None:
    """A stream joined with groups of its own, which another join reads, too."""
    few = Aggregate(s(), by="b", n="COUNT(*)", name="few")
    again = Project(few, "b", "n", name="again")
    plan = EquiJoin(EquiJoin(s(), "b", few, "b", name="own"), "n", again, "n", name="rst")
    expected = answers(VolatileEngine(), plan, tmp_path / "one")
    assert answers(PartitionedEngine(3), plan, tmp_path / "three") == expected and expected[-1]


def test_as_many_tasks_read_a_stream_as_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each batch of it is cut into so many slices."""
    (tmp_path / "r.csv").write_text("".join(f"{i},{i}\n" for i in range(9)))
    source = DataSource("r", tmp_path / "r.csv", {"a": "INT", "b": "INT"}, parallelism=2)
    opened = Input({"r": open_source(source.relation, tmp_path)}, PushedBatches(), tasks={"r": 2})
    for number in range(2):
        dealt = opened.split(BatchSpans(number, {"r": ({"row": 0}, {"row": 9})}), 4)
        assert [sum(each.rows or 0 for each in slices.get("r", ())) for slices in dealt] in ([5, 4, 0, 0], [4, 5, 0, 0])
    told: list[Mapping[str, int]] = []
    run = RunPlanner.open_executor

    def executor(self: RunPlanner, plan: Plan, input: Input, *rest: Any) -> Executor:
        told.append(self.tasks)
        return run(self, plan, input, *rest)

    monkeypatch.setattr(RunPlanner, "open_executor", executor)
    assert Sink(source).to_arrow().num_rows == 9 and told == [{"r": 2}]
