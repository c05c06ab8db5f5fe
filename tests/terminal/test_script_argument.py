"""Scripts that are no files: `squall run -` reads stdin, `squall run -c` has the text."""

import io
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.terminal.conftest import ENVIRONMENT, QUERY, SQUALL, STREAM, Ended, Squall

LOCAL = ("--backend", "local")
FINAL = "user,total\nann,1.75\nbob,2.25\n"
WRONG = f"{STREAM}SELECT usr FROM clicks;\n"


def give(stdin: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="ascii"))


@pytest.mark.parametrize("lead", ["", "-- first a remark\n", "\ufeff", "\r\n"])
def golden_a_script_of_stdin_or_of_an_option(lead: str, squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{lead}{STREAM}{QUERY}"
    assert squall("run", "-c", text, *LOCAL) == Ended(0, FINAL, "")
    give(text.encode(), monkeypatch)
    assert squall("run", "-", *LOCAL) == Ended(0, FINAL, "")


@pytest.mark.parametrize("stage", [(), ("logical",), ("stages",)])
def test_explain_says_of_them_what_it_says_of_a_file(
    stage: tuple[str, ...], squall: Squall, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = squall("explain", *stage, "q.sql")
    assert expected.status == 0
    assert squall("explain", *stage, "--command", STREAM + QUERY) == expected
    give((STREAM + QUERY).encode(), monkeypatch)
    assert squall("explain", *stage, "-") == expected


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (WRONG.encode(), 'SQ2003 {name}:3:8: unknown column "usr", did you mean "user"?'),
        (b"SELECT 1;\nSELECT '\xff'", "SQ4001 {name}:2:9: this is not UTF-8 text, a script is a text file"),
        (b"", "SQ1002 {name}: the script has no SELECT, add one; it is kept fresh"),
        (b"-- nothing\n", "SQ1002 {name}: the script has no SELECT, add one; it is kept fresh"),
        (
            b"CREATE TABLE u (a INT) USING csv OPTIONS (path 'u.csv'); SELECT a FROM u;",
            "SQ4001 {name}:1:14: no file \"u.csv\", put it into ., or change OPTIONS (path '…')",
        ),
    ],
)
def golden_errors_name_where_the_script_is_from(
    text: bytes, line: str, squall: Squall, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = os.fsdecode(text)  # as Python has the arguments of a process
    assert squall("run", "-c", given, *LOCAL) == Ended(2, "", line.format(name="<command>") + "\n")
    give(text, monkeypatch)
    assert squall("run", "-", *LOCAL) == Ended(2, "", line.format(name="<stdin>") + "\n")


def test_an_error_has_a_caret_on_a_terminal(room: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*SQUALL, "explain", "-"]
    with subprocess.Popen(command, cwd=room, env=ENVIRONMENT, stdin=subprocess.PIPE, stderr=theirs) as process:
        process.communicate(WRONG.encode())
    os.close(theirs)
    lines = os.read(ours, 1000).decode().rsplit("\x1b[2K", 1)[-1].splitlines()  # a slow start shows its progress first
    assert lines[0].startswith("SQ2003 <stdin>:3:8: ")
    assert lines[1:] == ["    SELECT usr FROM clicks;", "           ^^^"]


def test_no_stdin(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    line = "SQ4001 cannot read the script from stdin: it is closed\n"
    assert squall("run", "-", *LOCAL) == Ended(2, "", line)


def test_a_file_named_as_stdin_is(room: Path, squall: Squall) -> None:
    (room / "-").write_text(STREAM + QUERY)
    assert squall("run", "./-", *LOCAL) == Ended(0, FINAL, "")


def test_a_checkpoint_goes_on_wherever_the_script_is_from(squall: Squall) -> None:
    """What is kept is of the query, not of its file."""
    assert squall("run", "q.sql", *LOCAL, "--checkpoint", "kept") == Ended(0, FINAL, "")
    again = squall("run", "-c", STREAM + QUERY, *LOCAL, "--checkpoint", "kept", "--mode", "changes")
    assert again == Ended(0, "batch,op,user,total\n", "")
