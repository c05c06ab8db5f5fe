"""Step tests whose triggers are compiled: the rows are those of the kernels that serve every query.

`make test` has a sample that covers each kind of statement; `make compiled` has them all. Without a checkpoint
each batch is interpreted, too, and the state of both compared.
"""

from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from squallpy.runtime import shadow
from squallpy.runtime.compiled.functions import CompiledRun
from squallpy.testing.engines import KilledEngine, LocalEngine, SparkEngine, VolatileEngine
from squallpy.testing.step_tests import list_step_tests, run_steps

FILES = list_step_tests()
SAMPLE = (
    # keys: texts, NULLs, decimals and integers without room, none at all; sums and counts without room
    "group_by",
    "bigint_least_join",
    "join_keys_outgrow",
    "join_sums_outgrow",
    "join_counts_outgrow",
    # multiplicities that come and go, batches without rows
    "delete_first_join",
    "delete_first_self",
    "empty_batches",
    # lookups: probes, slices, scans
    "join_cross",
    "join_texts",
    # PRIMARY KEYs that data break
    "key_broken",
    # expressions: predicates of three values, decimals beside 64 bits, errors that the kernels tell
    "three_valued",
    "decimals_at_64_bits",
    "overflow_product",
    # sorted indexes: extremes of groups, under deletes
    "extremes_group",
    # products with a key of a view
    "nested_average_of_few_parts",
    # rows as often as their groups say, looked at by other statements, too
    "except_nested",
    "case_of_subquery_1",
    # compiled statements between others: nested aggregates, windows
    "sums_of_sums",
    "windows_slide",
    # payloads of cofactor rings: sums by group, models
    "cofactor_groups_text",
    "ols_groups",
)


@pytest.mark.parametrize("name", SAMPLE)
def step_compiled(name: str, tmp_path: Path) -> None:
    run_steps(FILES[name], LocalEngine(compile="wait"), tmp_path)


@pytest.mark.parametrize("name", SAMPLE[::3])
def step_compiled_state(name: str, tmp_path: Path, every_batch_checked: pytest.LogCaptureFixture) -> None:
    run_steps(FILES[name], VolatileEngine(compile="shadow"), tmp_path)
    assert not [r for r in every_batch_checked.records if r.message == "compiled code differs"]


WORKERS = "extremes_group"  # on Spark's workers


def step_compiled_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, call = list[CompiledRun](), CompiledRun.__call__

    def count(run: CompiledRun, *given: Any) -> tuple[int, ...] | None:
        calls.append(run)
        return call(run, *given)

    monkeypatch.setattr(CompiledRun, "__call__", count)
    run_steps(FILES[WORKERS], KilledEngine(3, seed=1, kills=0.03, compile="wait"), tmp_path)
    assert calls


@pytest.mark.spark
def step_compiled_on_spark(cluster: Any, tmp_path: Path) -> None:
    run_steps(FILES[WORKERS], SparkEngine(cluster, 3, compile="wait"), tmp_path)


@pytest.mark.compiled
@pytest.mark.parametrize("name", sorted(FILES.keys() - {*SAMPLE}))
def step_compiled_also(name: str, tmp_path: Path, every_batch_checked: pytest.LogCaptureFixture) -> None:
    if crc32(name.encode()) % 2:
        run_steps(FILES[name], LocalEngine(compile="wait"), tmp_path)
    else:
        run_steps(FILES[name], VolatileEngine(compile="shadow", optimizer=False), tmp_path)
    assert not [r for r in every_batch_checked.records if r.message == "compiled code differs"]


@pytest.fixture
def every_batch_checked(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    monkeypatch.setattr(shadow, "SHARE", float("inf"))
    return caplog
