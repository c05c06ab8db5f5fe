"""What the user did wrong: exactly one line on stderr, nothing on stdout, and the exit status."""

from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.terminal.failures import Interrupted, guarded
from tests.terminal.conftest import STREAM, Ended, Squall

SCRIPTS = {
    "SELECT user FROM clicks WHERE;": "SQ1001 q.sql:3:25: the query ends too early",
    "SELECT usr FROM clicks;": 'SQ2003 q.sql:3:8: unknown column "usr", did you mean "user"?',
    "SELECT user FROM click;": 'SQ2001 q.sql:3:18: unknown table "click", did you mean "clicks"?',
    "SELECT SUMM(amount) FROM clicks;": 'SQ2004 q.sql:3:8: unknown function "SUMM", did you mean "SUM"?',
    "SELECT user FROM clicks WHERE day > 5;": "SQ2005 q.sql:3:31: cannot compare DATE with INT, CAST one side",
    "SELECT ROW_NUMBER() OVER (ORDER BY day) FROM clicks;": (
        "SQ3001 q.sql:3:21: a window function (OVER) is not supported yet"
    ),
    "CREATE TABLE u (a INT) USING csv OPTIONS (pth 'u.csv'); SELECT a FROM u;": (
        'SQ7002 q.sql:3:43: unknown option "pth", did you mean "path"?'
    ),
    "CREATE TABLE u (a INT) USING csv OPTIONS (path 'u.csv'); SELECT a FROM u;": (
        "SQ4001 q.sql:3:14: no file \"u.csv\", put it into ., or change OPTIONS (path '…')"
    ),
    "": "SQ1002 q.sql: the script has no SELECT, add one; it is kept fresh",
}

COMMANDS = {
    "rnu q.sql": 'SQ7004 unknown command "rnu", did you mean "run"?',
    "run q.sql --bakend local": 'SQ7004 unknown option "--bakend", did you mean "--backend"?',
    "run q.sql --xyzzy": 'SQ7004 unknown option "--xyzzy", squall run --help lists what there is',
    "run": "SQ7004 missing argument 'QUERY.sql', squall run --help lists what there is",
    "run q.sql --batch-rows 0": (
        "SQ7004 invalid value for '--batch-rows': 0 is not in the range x>=1, squall run --help lists what there is"
    ),
    "run q.sql --set partitons=3": 'SQ7001 unknown setting "partitons", did you mean "partitions"?',
    "run q.sql --set partitions=x": 'SQ7003 partitions is a whole number, not "x"',
    "run q.sql --mode live": "SQ7003 --mode live needs a terminal on stdout, --mode changes or final",
    "run q.sql --mode live --out x": (
        "SQ7003 --mode live shows a table, and --out shows nothing, --mode changes or final"
    ),
    "run q.sql --format parquet": "SQ7003 --format parquet is for files, name one: --out result.parquet",
    "explain logicl q.sql": 'SQ7004 unknown stage "logicl", did you mean "logical"?',
    "explain logical": "SQ7004 explain takes a stage and one script, squall explain triggers query.sql",
}


@pytest.mark.parametrize(("select", "line"), SCRIPTS.items(), ids=[line.split()[0] for line in SCRIPTS.values()])
def golden_script_errors(select: str, line: str, room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(f"{STREAM}{select}\n")
    assert squall("run", "q.sql", "--backend", "local") == Ended(2, "", line + "\n")


@pytest.mark.parametrize(("command", "line"), COMMANDS.items(), ids=COMMANDS)
def golden_command_errors(command: str, line: str, squall: Squall) -> None:
    assert squall(*command.split()) == Ended(2, "", line + "\n")


def test_a_missing_script(squall: Squall) -> None:
    ended = squall("run", "nope.sql")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("SQ4001 cannot read the script nope.sql: ") and ended.err.count("\n") == 1


def test_a_value_that_fails_at_run_time(room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(f"{STREAM}SELECT CAST(user AS INT) AS n FROM clicks;")
    ended = squall("run", "q.sql", "--backend", "local")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("SQ5002 ") and ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (SquallError("SQ1001", "x"), 2),
        (SquallError("SQ4001", "x"), 2),
        (SquallError("SQ5001", "x"), 1),
        (SquallError("SQ6001", "x"), 2),
        (SquallError("SQ7001", "x"), 2),
        (SquallError("SQ8001", "x"), 3),
        (ValueError("x"), 1),
        (KeyboardInterrupt(), 130),
        (Interrupted(), 130),
    ],
)
def test_exit_statuses(error: BaseException, status: int) -> None:
    def fail() -> None:
        raise error

    assert guarded(fail) == status


def test_our_own_mistakes_are_one_line_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise RuntimeError("first\n  second")

    monkeypatch.delenv("SQUALL_DEBUG", raising=False)
    guarded(fail)
    line = "internal error: RuntimeError: first second, please report\n"
    assert capfd.readouterr() == ("", line)
    monkeypatch.setenv("SQUALL_DEBUG", "1")
    guarded(fail)
    said = capfd.readouterr().err
    assert said.startswith("Traceback") and said.endswith(line)
