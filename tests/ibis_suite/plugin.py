"""A plugin of pytest: Ibis' own tests run over our backend, and what came of each is counted.

pytest -p tests.ibis_suite.plugin -c tests/ibis_suite/pytest.ini --pyargs ibis.backends.tests -m squall
"""

import json
import os
import random
import signal
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any

import ibis
import pytest

import squallpy.ibis_backend
from squallpy.base.errors import SquallError
from squallpy.ibis_backend.backend import Backend
from tests.ibis_suite import tables

sys.modules["ibis.backends.squall"] = squallpy.ibis_backend


def _conftest() -> types.ModuleType:
    """Make the module in which Ibis looks for a backend's data."""
    from ibis.backends.conftest import TEST_TABLES
    from ibis.backends.tests import data
    from ibis.backends.tests.base import BackendTest

    class TestConf(BackendTest):  # type: ignore[misc]
        check_dtype = False
        stateful = False
        supports_structs = False
        supports_map = False
        supports_arrays = False
        supports_json = True
        returned_timestamp_unit = "us"
        force_sort = True
        deps = ()

        @classmethod
        def name(cls) -> str:
            return "squall"

        @staticmethod
        def connect(*, tmpdir: Any, worker_id: Any, **kw: Any) -> Backend:
            return ibis.squall.connect(**kw)

        def _load_data(self, **_: Any) -> None:
            chosen = random.Random(7)
            made = {
                "functional_alltypes": tables.alltypes(),
                "diamonds": tables.diamonds(chosen),
                "batting": tables.batting(chosen),
                "awards_players": tables.awards_players(chosen),
                "astronauts": tables.astronauts(chosen, TEST_TABLES["astronauts"]),
            }
            for name, rows in made.items():
                self.connection.create_table(name, rows, schema=TEST_TABLES[name])
            self.connection.create_table(
                "json_t", data.json_types.reset_index(names="rowid"), schema={"rowid": "int64", "js": "string"}
            )
            self.connection.create_table("win", data.win)
            self.connection.create_table("topk", data.topk)

    module = types.ModuleType("ibis.backends.squall.tests.conftest")
    module.TestConf = TestConf  # type: ignore[attr-defined]
    return module


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "squall: a test of our backend")
    for name in ("ibis.backends.squall.tests", "ibis.backends.squall.tests.conftest"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["ibis.backends.squall.tests.conftest"] = _conftest()


REFUSALS = (
    "OperationNotDefinedError",
    "UnsupportedOperationError",
    "UnsupportedBackendType",
    "UnsupportedArgumentError",
)
"""What Ibis and the backend raise for what is not supported, by its name."""
ABSENT = ("'Backend' object has no attribute", "no attribute 'fetchall'", "'partition_by'", "Unknown dialect squall")
"""What is said of methods and options that a backend has not, and of compilers that Ibis does not ship."""
OUTCOMES: dict[str, tuple[str, str]] = {}


LONGEST = int(os.environ.get("IBIS_LONGEST", "60"))
"""Seconds that a test may take."""


def _stop(*_: Any) -> None:
    raise TimeoutError(f"it takes more than {LONGEST} seconds")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    signal.signal(signal.SIGALRM, _stop)
    signal.alarm(LONGEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    if report.when == "call" or (report.when == "setup" and report.outcome != "passed"):
        error = call.excinfo.value if call.excinfo else None
        OUTCOMES[f"{item.path.name}::{item.name}"] = _classify(item.name.partition("[")[0], report, error)
        if out := os.environ.get("IBIS_OUTCOMES"):
            Path(out).write_text(json.dumps(OUTCOMES, indent=1))
    return report


DIFFERENCES = {
    "test_divide_by_zero": "x / 0 is NULL",
    "test_column_fill_null": "NaN is a number, not NULL",
    "test_table_describe": "describe() leaves timestamps out",
    "test_keyword_fields": "the fields of a STRUCT may be NULL",
}
"""Tests whose answer is another in SQL here, and how (docs/ibis.md)."""


OF_THE_DATA = (
    "test_order_by_no_projection", "test_join_with_pandas_non_null_typed_columns", "test_uncorrelated_subquery",
)  # fmt: skip
"""Tests that know rows of the data that is not shipped."""


def _classify(test: str, report: Any, error: BaseException | None) -> tuple[str, str]:
    """Tell what came of a test, and why: passed, refused, skipped, other (DIFFERENCES), slow or failed."""
    if error is None:
        return "passed" if report.outcome == "passed" else report.outcome, ""
    why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    if (
        test in OF_THE_DATA
        or isinstance(error, pytest.skip.Exception)
        or why in ("KeyError: 'squall'", 'KeyError: "squall"')
    ):
        return "skipped", why  # NB: a KeyError is a test that has a text or type for each backend that it knows
    causes = {type(error).__name__, type(error.__cause__).__name__, type(error.__context__).__name__}
    is_refused = causes & {*REFUSALS, "NotImplementedError"} or any(text in why for text in ABSENT)
    if isinstance(error, SquallError | pytest.xfail.Exception) or is_refused:
        return "refused", why
    if isinstance(error, TimeoutError):
        return "slow", why
    return ("other", DIFFERENCES[test]) if test in DIFFERENCES else ("failed", why)


KINDS = ("passed", "refused", "other", "skipped", "slow", "failed")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the numbers as the table of docs/ibis.md."""
    counts = Counter((test.partition("::")[0], outcome) for test, (outcome, _) in OUTCOMES.items())
    files = sorted({file for file, _ in counts})
    for file in (*files, "all"):
        numbers = (sum(n for (f, k), n in counts.items() if k == kind and file in (f, "all")) for kind in KINDS)
        terminalreporter.write_line(f"| {file} | {' | '.join(map(str, numbers))} |")
