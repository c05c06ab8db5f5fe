"""Pages of docs/errors/, one for each code: written by hand, but for what the tool shows in their consoles.

    `q.sql`:                       a block after such a line is a file
    $ squall explain q.sql         a line of a block `console` is a command, in the folder of the page's files
    SQ2003 q.sql:2:8: unknown …    its output is written anew, and so is the line under the title

`NAME=value` before `squall` is a variable of its environment; a command that ends in `&` goes on beside the next ones,
once it has written a line, and `wait` shows its output.
"""

import ast
import errno
import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn
from unittest.mock import Mock, patch

from squallpy.base.error_codes import CODE, read_pages
from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint.durable_folder import reporting_no_room
from squallpy.runtime.spark.partition_placement import Placement
from squallpy.runtime.spark.spark_session import _jvm_ended_error
from squallpy.runtime.spark.worker_tasks import PickledStages
from squallpy.terminal.cli import main
from squallpy.terminal.failures import status_of

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
_BLOCK = re.compile(r"(?:^`([^`\n]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)
_SQUALL = re.compile(r"((?:\w+=\S* )*)squall ([^|<>&;]*)")


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
    files = {name: block for name, _, block in _BLOCK.findall(told) if name}
    with TemporaryDirectory() as folder, ExitStack() as conditions:
        for name, block in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block, encoding="utf-8")
        for condition in CONDITIONS.get(code, list)():
            conditions.enter_context(condition)
        console = conditions.enter_context(Console(Path(folder)))
        return _BLOCK.sub(lambda m: m[0] if m[2] != "console" else f"```console\n{console.run(m[3])}```", told)


class Console:
    """A folder in which commands run; those that are left in the background end with it."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._running = folder, list[subprocess.Popen[str]]()

    def __enter__(self) -> "Console":
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running:
            process.kill()
            process.wait()

    def run(self, block: str) -> str:
        """Run the commands of a block and show each with its output."""
        return "".join(f"$ {command}\n{self._plain(self._output(command))}" for command in _COMMAND.findall(block))

    def _output(self, command: str) -> str:
        if command == "wait":
            return "".join(process.communicate(timeout=60)[0] for process in self._running)
        if found := _SQUALL.fullmatch(command):
            return self._squall(found[2].split(), dict(each.split("=", 1) for each in found[1].split()))
        line = command.removesuffix("&")
        process = subprocess.Popen(
            ["bash", "-c", _PROGRAM.sub(lambda m: _PROGRAMS[m[0]], line)],
            cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"PYTHONPATH": str(PACKAGE.parent)},
        )  # fmt: skip
        if line == command:
            return process.communicate()[0]
        self._running.append(process)
        assert process.stdout
        return process.stdout.readline()

    def _squall(self, arguments: list[str], environment: Mapping[str, str]) -> str:
        """Run the command in this process, as on a terminal of which the output is read line by line."""
        shown = io.BytesIO()
        out, err = (kind(shown, encoding="utf-8", write_through=True) for kind in (io.TextIOWrapper, _Terminal))
        around = patch.dict(os.environ, {"TERM": "dumb", **environment})
        with chdir(self._folder), around, redirect_stdout(out), redirect_stderr(err):
            main(arguments)
        return shown.getvalue().decode()

    def _plain(self, text: str) -> str:
        """Leave out of an output what differs from machine to machine."""
        text = text.replace(f"{self._folder}/", "").replace(socket.gethostname(), "HOST")
        return re.sub(
            r"process \d+", "process 4711", re.sub(r"[\d.]+ GB of memory is free", "16.0 GB of memory is free", text)
        )


_PROGRAMS = {"squall": f"exec {sys.executable} -m squallpy.terminal", "python": sys.executable}
_PROGRAM = re.compile(r"^(squall|python)\b")


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def _raising(error: Callable[[], object]) -> AbstractContextManager[object]:
    """Let a run on Spark end with an error before Spark is there."""

    def executor(*_: object) -> NoReturn:
        found = error()
        raise found if isinstance(found, SquallError) else AssertionError(found)

    return patch("squallpy.runtime.spark.executor.SparkExecutor", executor)


def _no_room(self: object, name: str, fill: object) -> NoReturn:
    with reporting_no_room(name):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), f"state/{name}")


def _no_executor() -> None:
    waiting = Mock(_session=Mock(**{"sparkContext.master": "spark://cluster:7077"}), _discover_executors=lambda: ())
    clock = patch("squallpy.runtime.spark.partition_placement.monotonic", side_effect=[0.0, 1e9])
    with clock, patch("squallpy.runtime.spark.partition_placement.executors_of", return_value=[1]):
        Placement._wait_for_executors(waiting)


CONDITIONS: dict[str, Callable[[], list[AbstractContextManager[object]]]] = {
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
