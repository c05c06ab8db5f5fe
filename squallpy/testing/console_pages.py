"""Pages with consoles, whose commands are run to show what they print.

    `q.sql`:                       a block after such a line is a file
    $ squall explain q.sql         a line of a block `console` is a command, in the folder of the page's files
    SQ2003 q.sql:2:8: unknown …    its output is written anew

`NAME=value` before `squall` is a variable of its environment; a command that ends in `&` goes on beside the next ones,
once it has written a line, and `wait` shows its output.
"""

import io
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from squallpy.terminal.cli import main

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"(?:^`([^`\n]+)`:\n\n)?^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)$", re.MULTILINE)
_SCRIPT = re.compile(r"python (\w+\.py)")
_SQUALL = re.compile(r"((?:\w+=\S* )*)squall ([^|<>&;]*)")


def with_outputs(page: str) -> str:
    """Bring the consoles of a page up to date."""
    files = {name: block for name, _, block in _BLOCK.findall(page) if name}
    with TemporaryDirectory() as folder, Console(Path(folder)) as console:
        for name, block in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block, encoding="utf-8")
        return _BLOCK.sub(lambda m: m[0] if m[2] != "console" else f"```console\n{console.run(m[3])}```", page)


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
        if found := _SCRIPT.fullmatch(command):
            return self._here(lambda: run_path(found[1], run_name="__main__"))
        line = command.removesuffix("&")
        process = subprocess.Popen(
            ["bash", "-c", _PROGRAM.sub(lambda m: _PROGRAMS[m[0]], line)],
            cwd=self._folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        if line == command:
            return process.communicate()[0]
        self._running.append(process)
        assert process.stdout
        return process.stdout.readline()

    def _squall(self, arguments: list[str], environment: Mapping[str, str]) -> str:
        """Run the command in this process, as on a terminal of which the output is read line by line."""
        # NB: a session of Spark's that other tests have started would be used
        alone = patch("pyspark.SparkContext._active_spark_context", None)
        with patch.dict(os.environ, {"TERM": "dumb", **environment}), alone:
            return self._here(lambda: main(arguments))

    def _here(self, run: Callable[[], object]) -> str:
        """Run a function in the folder, and return what it prints."""
        shown = io.BytesIO()
        out, err = (kind(shown, encoding="utf-8", write_through=True) for kind in (io.TextIOWrapper, _Terminal))
        with chdir(self._folder), redirect_stdout(out), redirect_stderr(err):
            run()
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
