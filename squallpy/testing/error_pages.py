"""Pages of docs/errors/, one for each code: written by hand, but for their consoles and the line under the title."""

import ast
import errno
import os
import re
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import NoReturn
from unittest.mock import MagicMock, Mock, patch

from squallpy.base.error_pages import CODE, read_pages
from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint.durable_folder import reporting_no_room
from squallpy.runtime.spark.preferred_locations import PreferredLocations
from squallpy.runtime.spark.spark_session import _jvm_ended_error
from squallpy.runtime.spark.worker_tasks import PickledStages
from squallpy.terminal.failures import status_of
from squallpy.testing.console_pages import with_outputs

PACKAGE = Path(__file__).resolve().parents[1]
PAGES = PACKAGE.parent / "docs" / "errors"
KINDS = {
    "1": "Syntax of the script", "2": "Names and types", "3": "Not supported", "4": "Sources and data",
    "5": "Values at run time", "6": "Checkpoints and state", "7": "Settings, options and sinks", "8": "Environment",
}  # fmt: skip
HEAD = """# Errors by code

`squall explain SQ2003` prints the page of a code. An error is one line: the code, a place in the script if it has one,
what is wrong, and what to do next. On a terminal the line of the script comes with a caret under the place.

"""


def codes_raised() -> set[str]:
    """Collect the codes in the code: texts that are a code and nothing else."""
    found = set[str]()
    for path in PACKAGE.rglob("*.py"):
        if "testing" not in path.parts:
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            texts = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
            found |= set(filter(re.compile(CODE).fullmatch, texts))
    return found


def error_pages() -> dict[Path, str]:
    """Write all pages as they are now, and the page that lists them."""
    pages = {code: page_text(code, text) for code, text in read_pages().items()}
    rows = "".join(f"| [{code}]({code}.md) | {title_of(text)} |\n" for code, text in pages.items())
    index = f"{HEAD}| code | |\n|---|---|\n{rows}"
    return {PAGES / f"{code}.md": text for code, text in pages.items()} | {PAGES / "README.md": index}


def title_of(page: str) -> str:
    """Read the title of a page: `# SQ2003: unknown column` → `unknown column`."""
    return page.split("\n", 1)[0].partition(": ")[2]


def page_text(code: str, text: str) -> str:
    """Bring a page up to date."""
    title, body = text.split("\n", 1)
    status = status_of(SquallError(code, ""))
    body = re.sub(r"\A\n*(\*.*exit status.*\*\n\n)?", "", body)
    told = f"{title}\n\n*{KINDS[code[2]]}; exit status {status}.*\n\n{body}"
    with ExitStack() as conditions:
        for condition in CONDITIONS.get(code, list)():
            conditions.enter_context(condition)
        return with_outputs(told)


def _raising(error: Callable[[], object]) -> AbstractContextManager[object]:
    """Let a run on Spark end with an error before Spark is there."""

    def executor(*_: object, **__: object) -> NoReturn:
        found = error()
        raise found if isinstance(found, SquallError) else AssertionError(found)

    return patch("squallpy.runtime.spark.executor.SparkExecutor", executor)


def _no_room(self: object, name: str, fill: object) -> NoReturn:
    with reporting_no_room(name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"state/{name}")


def _no_executor() -> None:
    waiting = Mock(_session=Mock(**{"sparkContext.master": "spark://cluster:7077"}), _discover_executors=lambda: ())
    clock = patch("squallpy.runtime.spark.preferred_locations.monotonic", side_effect=[0.0, 1e9])
    with clock, patch("squallpy.runtime.spark.preferred_locations.executors_of", return_value=[1]):
        PreferredLocations._wait_for_executors(waiting)


def _replica() -> list[AbstractContextManager[object]]:
    """Let a server of PostgreSQL have a table, and a log without changes of rows."""
    from squallpy.runtime.connectors.postgres.tables import ServerColumn, ServerTable

    table = ServerTable("public", "orders", 1, (ServerColumn("id", 20, -1, False, "bigint"),), ("id",), "d", "r", 0)
    connection = MagicMock(**{"execute.return_value.fetchone.return_value": ("replica",)})
    connection.__enter__.return_value = connection
    places = "squallpy.runtime.connectors.postgres"
    return [
        patch(f"{places}.connection.Server.connect", return_value=connection),
        *(patch(f"{places}.{module}.find_table", return_value=table) for module in ("postgres_source", "slot_log")),
    ]


CONDITIONS: dict[str, Callable[[], list[AbstractContextManager[object]]]] = {
    "SQ4009": _replica,
    "SQ6004": lambda: [patch("squallpy.runtime.checkpoint.state_folders.read_record", return_value=None)],
    "SQ6006": lambda: [patch("squallpy.runtime.checkpoint.durable_folder.LocalDurable.create", _no_room)],
    "SQ8001": lambda: [
        patch("squallpy.runtime.spark.java._USUAL", ()),
        patch.dict(os.environ, {"PATH": "", "JAVA_HOME": ""}),
    ],
    "SQ8005": lambda: [_raising(PickledStages("", Mock(), "0.0.9").open)],
    "SQ8006": lambda: [_raising(_no_executor)],
    "SQ8007": lambda: [_raising(lambda: _jvm_ended_error(-signal.SIGKILL, None))],
    "SQ8009": lambda: [patch.dict(sys.modules, {"fastavro": None})],
}
"""Conditions that commands cannot bring about, by code: a machine without Java, a full disk, …"""
