"""Every step test on one executor: six of eight with the optimizer on and state in a checkpoint, one with the optimizer
off and state nowhere, one on partitions; some on Spark, too. `make test` has an eighth of those with generated rows,
`make alike` the others; `make long` has all on all executors."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from squallpy.base.errors import SquallError
from squallpy.compiler import CompiledQuery
from squallpy.runtime.kernels import dictionary
from squallpy.script_session import ScriptSession
from squallpy.testing.engines import (
    KilledEngine,
    LocalEngine,
    MemoryEngine,
    MovedEngine,
    PartitionedEngine,
    SparkEngine,
    VolatileEngine,
)
from squallpy.testing.passes_at_work import NEEDS_ITS_PASSES
from squallpy.testing.step_tests import STEPS, list_step_tests, run_steps
from tests.marks import long

FILES = list_step_tests()
KNOWN: dict[str, str] = {}  # what fails, and why
ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "optimized": LocalEngine,
    "plain": partial(VolatileEngine, optimizer=False),
}


class Joining(PartitionedEngine):
    """With a join operator, where a query can be spread so, else by cost, and on fewer partitions."""

    def _compile(self, session: ScriptSession) -> CompiledQuery:
        compiler, sizes = session.compiler, self._sizes
        program = compiler.to_program(*session.script.queries)
        try:
            return compiler.place(program, self._partitions, sizes)
        except SquallError as error:
            if error.code != "SQ7003":
                raise
            other = replace(compiler, settings=replace(self._settings, join_operator="auto"))
            return other.place(program, 3, sizes)


MORE: dict[str, Callable[[], MemoryEngine]] = {
    "two partitions": partial(PartitionedEngine, 2),
    "three partitions, killed": partial(KilledEngine, 3),
    "killed, then on others": partial(MovedEngine, 3, kills=0.05),
    "one statement a stage": partial(PartitionedEngine, 3, fusion=False),
    "as well-formed": partial(PartitionedEngine, 3, move_rules=False, move_sharing=False),
    "on grids": partial(Joining, 7, join_operator="Dynamic", join_groups=True),
    "heavy keys": partial(Joining, 5, join_operator="Hybrid"),
    "on hypercubes": partial(Joining, 8, join_operator="HyperCube"),
}
ON_SPARK = {  # what travels differs between these, or how often it does
    "join_comma": 3, "static_table": 3, "strings": 3, "delete_first_join": 2, "global_join": 1, "empty_batches": 3,
    "keys_wide_types": 3, "doubles_infinite_join": 2, "extremes_types": 2, "subquery_row_not_in": 2,
    "range_sum_by_group": 2, "running_two": 2, "windows_join": 3, "windows_nested": 2, "windows_slide": 3,
    "windows_two_clocks": 3, "over_top_numbers": 2, "over_frame_rows": 2, "matrix_power": 3,
    "matrix_least_squares": 2, "matrix_shortest": 2, "views_of_views": 3, "bigint_least_join": 2,
    "spec_cofactor": 3, "cofactor_groups_text": 2, "spec_mutual_information": 2, "cofactor_ten_times": 2,
    "cofactor_primary_keys": 3, "upsert_matrix": 2,
    "lambdas_as_in_spark": 2, "sessions_aggregates": 3, "sessions_dates": 2, "now_between": 3, "windows_session": 3,
}  # fmt: skip

RENEWED: dict[str, Callable[[], MemoryEngine]] = {
    "strings": LocalEngine,
    "extremes_types": partial(PartitionedEngine, 3),
    "keys_wide_types": VolatileEngine,
    "over_texts": LocalEngine,
    "join_texts": partial(PartitionedEngine, 2),
    "windows_nested": VolatileEngine,
    "order_hidden": LocalEngine,
    "upsert_matrix": LocalEngine,
}


def test_folders_are_by_feature() -> None:
    """Names are unique; rows that a generator made are apart from those that people wrote, with what they expect."""
    assert len(list(STEPS.rglob("*.slt"))) == len(FILES) and not list(STEPS.glob("*.slt"))
    expecting = re.compile(r"^(result|changes|fails|error)", re.M)
    generated = STEPS / "generated"
    assert not [path for path in generated.rglob("*.slt") if expecting.search(path.read_text())]


def marks_of(path: Path, is_long: bool = False) -> list[pytest.MarkDecorator]:
    """Mark a file: expected to fail if it is known to, `long` or `alike`, and of one process, which asks the oracle
    once."""
    marks = [pytest.mark.xfail(reason=KNOWN[path.stem], strict=True)] if path.stem in KNOWN else []
    is_alike = "generated" in path.parts and crc32(path.stem.encode()) % 8 > 0  # each is made of many queries
    chosen = [pytest.mark.long] if is_long else [pytest.mark.alike] if is_alike else []
    return [pytest.mark.xdist_group(path.stem), *marks, *chosen]


# on several partitions each takes as long as ten others: there only by `make long`
LONG = {
    "mark_of_rows", "over_frame_highest", "outer_star", "over_frame_rows", "outer_chain_full", "quantified_subquery",
    "over_ignore_nulls_of_keys", "over_window", "over_ignore_nulls", "null_columns", "over_frame_rows_apart",
    "outer_star_on", "over_from_here", "outer_chain_left", "views_of_views", "over_frame_extremes", "over_ends",
    "anti_many_on", "over_frame_computed", "over_alike_backwards", "subquery_first_settled", "over_over_neighbours",
    "over_shares", "over_qualify", "mark_quantified", "quantified_places", "over_ends_apart", "outer_chain_right",
    "over_nth", "mark_correlated", "mark_of_in", "join_many", "outer_snowflake", "over_neighbours",
    "over_frame_lateral", "full_joins_nested", "mark_nested", "over_frame_before", "range_disjunctions_many",
    "full_joins_on_coalesce", "on_both_sides_semi", "over_rollup_numbered", "over_row_number",
    "full_joins_of_other_keys", "key_broken_row_number", "limit_in_alike", "median_nested", "over_wide", "over_rank",
    "over_constants_computed", "over_ends_of_keys", "outer_full_many_using", "over_top_keys", "limit_by_exists",
    "over_in", "greatest_so_far", "full_joins_then_others", "mark_places", "cofactor_joins", "over_nth_of_alike",
    "intervals_sessions", "exists_greater_between", "over_total",
}  # fmt: skip
EXECUTORS = ("optimized", "optimized", "optimized", "optimized", "optimized", "optimized", "plain", "elsewhere")


def executor_of(name: str) -> str:
    """Choose the executor of a file in `make test`; on the others it runs by `make long`."""
    chosen = EXECUTORS[crc32(name[::-1].encode()) % len(EXECUTORS)]
    cannot = name in NEEDS_ITS_PASSES if chosen == "plain" else name in LONG and chosen == "elsewhere"
    return "optimized" if cannot else chosen


@pytest.mark.parametrize(
    ("path", "engine"),
    [
        pytest.param(path, engine, id=f"{path.stem}-{engine}", marks=marks_of(path, engine != executor_of(path.stem)))
        for path in FILES.values()
        for engine in ENGINES
        if not (engine == "plain" and path.stem in NEEDS_ITS_PASSES)
    ],
)
def step_local(path: Path, engine: str, tmp_path: Path) -> None:
    run_steps(path, ENGINES[engine](), tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=marks_of(path, executor_of(path.stem) != "elsewhere"))
        for path in FILES.values()
    ],
)
def step_elsewhere(path: Path, tmp_path: Path) -> None:
    """One of the other executors, whichever falls to the file by its name."""
    name = list(MORE)[crc32(path.stem.encode()) % len(MORE)]
    run_steps(path, MORE[name](), tmp_path)


@pytest.mark.parametrize("name", RENEWED)
def step_with_strings_numbered_anew(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each batch, wherever a number may stand."""
    monkeypatch.setattr(dictionary.Dictionary, "is_due", property(len))
    monkeypatch.setattr(dictionary, "_WORTH", 0.0)
    run_steps(FILES[name], RENEWED[name](), tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize("name", [long(each) if place % 2 else each for place, each in enumerate(ON_SPARK)])
def step_spark(name: str, tmp_path: Path, cluster: Any) -> None:
    run_steps(FILES[name], SparkEngine(cluster, ON_SPARK[name]), tmp_path)


@pytest.mark.spark
def step_spark_while_a_grid_behind_windows_changes(tmp_path: Path, cluster: Any) -> None:
    """With an exchange before the grid."""
    engine = SparkEngine(cluster, 4, join_operator="Dynamic")
    run_steps(FILES["windows_band"], engine, tmp_path)
    assert engine.policy and engine.policy.plan.epoch == 1
