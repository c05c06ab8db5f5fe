"""What the user did wrong: exactly one line on stderr, nothing on stdout, and the exit status."""

import errno
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
    "SELECT RAND() FROM clicks;": (
        "SQ3001 q.sql:3:8: RAND is not supported yet, an answer does not depend on when it is computed"
    ),
    "CREATE TABLE u (a INT) USING csv OPTIONS (pth 'u.csv'); SELECT a FROM u;": (
        'SQ7002 q.sql:3:43: unknown option "pth", did you mean "path"?'
    ),
    "CREATE TABLE u (a INT) USING csv OPTIONS (path 'u.csv'); SELECT a FROM u;": (
        "SQ4001 q.sql:3:14: no file \"u.csv\", put it into ., or change OPTIONS (path '…')"
    ),
    "CREATE TABLE u (a INT) USING csv OPTIONS (path ''); SELECT a FROM u;": (
        'SQ7002 q.sql:3:43: option "path" is empty, name a file, a folder or a glob'
    ),
    "CREATE TABLE u (a INT) USING parquet OPTIONS (path 'u', header 'true'); SELECT a FROM u;": (
        'SQ7002 q.sql:3:57: option "header" is for csv, not for parquet, remove it'
    ),
    "": "SQ1002 q.sql: the script has no SELECT, add one; it is kept fresh",
}

COMMANDS = {
    "rnu q.sql": 'SQ7004 unknown command "rnu", did you mean "run"?',
    "run q.sql --bakend local": 'SQ7004 unknown option "--bakend", did you mean "--backend"?',
    "run q.sql --xyzzy": 'SQ7004 unknown option "--xyzzy", squall run --help lists what there is',
    "run": "SQ7004 missing argument 'QUERY.sql', name a script, or - for stdin, or write it after -c",
    "run q.sql -c SELECT": "SQ7004 the script is given twice, by q.sql and by -c, leave one out",
    "run - -c SELECT": "SQ7004 the script is given twice, by - and by -c, leave one out",
    "run -c": "SQ7004 option '-c' requires an argument",
    "explain": "SQ7004 missing argument 'QUERY.sql', name a script, or - for stdin, or write it after -c",
    "explain triggers q.sql -c SELECT": (
        "SQ7004 explain takes a stage and one script, squall explain triggers query.sql"
    ),
    "explain q.sql -c SELECT": "SQ7004 the script is given twice, by q.sql and by -c, leave one out",
    "explain logicl -c SELECT": 'SQ7004 unknown stage "logicl", did you mean "logical"?',
    "submit -": "SQ7004 submit takes a script that is a file, write it to one; squall run takes - and -c",
    "submit -c SELECT": "SQ7004 submit takes a script that is a file, write it to one; squall run takes - and -c",
    "run q.sql --batch-rows 0": (
        "SQ7004 invalid value for '--batch-rows': 0 is not in the range x>=1, squall run --help lists what there is"
    ),
    "run q.sql --set partitons=3": 'SQ7001 unknown setting "partitons", did you mean "partitions"?',
    "run q.sql --set partitions=x": 'SQ7003 partitions is a whole number, not "x"',
    "run q.sql --set partitions=0": "SQ7003 partitions is at least 1, not 0",
    "run q.sql --set partitions=-1": "SQ7003 partitions is at least 1, not -1",
    "run q.sql --set partitions=4097": "SQ7003 partitions is at most 4,096, not 4,097",
    "run q.sql --set join.epsilon=x": 'SQ7003 join.epsilon is a number, not "x"',
    "run q.sql --set join.epsilon=nan": "SQ7003 join.epsilon is a number, not nan",
    "run q.sql --set join.epsilon=0": "SQ7003 join.epsilon is at least 0.01, not 0.0",
    "run q.sql --set join.epsilon=2": "SQ7003 join.epsilon is at most 1.0, not 2.0",
    "run q.sql --set join.capacity_mb=-1": "SQ7003 join.capacity_mb is at least 0, not -1",
    "run q.sql --set interleave=robin": (
        'SQ7003 interleave is proportional, round-robin or largest-last, not "robin", did you mean "round-robin"?'
    ),
    "run q.sql --mode live": "SQ7003 --mode live needs a terminal on stdout, --mode changes or final",
    "run q.sql --mode live --out x": (
        "SQ7003 --mode live shows a table, and --out shows nothing, --mode changes or final"
    ),
    "run q.sql --format parquet": "SQ7003 --format parquet is for files, name one: --out result.parquet",
    "run q.sql --conf spark.ui.port=1 --backend local": (
        "SQ7003 --conf is for Spark, not for --backend local, leave one out"
    ),
    "run q.sql --conf memory=8g": "SQ7003 --conf memory=8g is not a setting of Spark, --conf spark.NAME=VALUE",
    "run q.sql --conf spark.memory": "SQ7003 --conf spark.memory is not a setting of Spark, --conf spark.NAME=VALUE",
    "run q.sql --conf spark.master=yarn": "SQ7003 --conf spark.master is set by --master, --master yarn",
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


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("qq.sql", 'SQ4001 cannot read the script qq.sql: no such file or directory, did you mean "q.sql"?'),
        (".", "SQ4001 cannot read the script .: is a directory"),
        ("latin.sql", "SQ4001 latin.sql:2:12: this is not UTF-8 text, a script is a text file"),
        ("binary.sql", "SQ4001 binary.sql:1:3: this is not UTF-8 text, a script is a text file"),
    ],
)
def golden_scripts_that_cannot_be_read(script: str, line: str, room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(STREAM)
    (room / "latin.sql").write_bytes("-- Queries\nSELECT 'café';".encode("latin-1"))
    (room / "binary.sql").write_bytes(b"PK\xff\x00\x01")
    assert squall("run", script) == Ended(2, "", line + "\n")


def test_a_script_with_a_byte_order_mark(room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(f"{STREAM}SELECT user FROM clicks WHERE FALSE;", encoding="utf-8-sig")
    assert squall("run", "q.sql", "--backend", "local") == Ended(0, "user\n", "")


def test_a_checkpoint_without_a_name(room: Path, squall: Squall) -> None:
    """As of a variable of the shell that nobody has set: nothing would be kept."""
    line = "SQ7003 --checkpoint has an empty name, name a folder, or a URI that Arrow knows\n"
    assert squall("run", "q.sql", "--backend", "local", "--checkpoint", "") == Ended(2, "", line)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("--profile .", "SQ7005 cannot write .: is a directory"),
        ("--checkpoint q.sql", "SQ6003 cannot keep state in the checkpoint q.sql: it is a file"),
        ("--checkpoint q.sql/state", "SQ6003 cannot keep state in the checkpoint q.sql/state: not a directory"),
        ("--checkpoint state --set local_dir=q.sql", "SQ6003 cannot keep state in the local_dir q.sql: it is a file"),
        ("--checkpoint full", "SQ6002 full is not empty and not a checkpoint, choose a new folder"),
    ],
)
def golden_places_that_cannot_be(options: str, line: str, room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(f"{STREAM}SELECT user FROM clicks;")
    (room / "full").mkdir()
    (room / "full" / "mine").touch()
    assert squall("run", "q.sql", "--backend", "local", *options.split()) == Ended(2, "", line + "\n")
    assert [path.name for path in (room / "full").iterdir()] == ["mine"]


def test_a_checkpoint_of_another_query(room: Path, squall: Squall) -> None:
    for select, status in (("SELECT user FROM clicks;", 0), ("SELECT day FROM clicks;", 2)):
        (room / "q.sql").write_text(f"{STREAM}{select}")
        ended = squall("run", "q.sql", "--backend", "local", "--checkpoint", "state")
        assert ended.status == status
    line = "SQ6001 the checkpoint state is of another query, or of other settings, give each query its own folder\n"
    assert (ended.out, ended.err) == ("", line)


def test_a_checkpoint_of_another_order(room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(f"{STREAM}SELECT user FROM clicks;")
    for order, status in (("round-robin", 0), ("round-robin", 0), ("proportional", 2)):
        options = ("--backend", "local", "--checkpoint", "state", "--set", f"interleave={order}")
        assert squall("run", "q.sql", *options).status == status


def test_nothing_is_written_by_a_run_that_fails(room: Path, squall: Squall) -> None:
    (room / "u.csv").write_text("1\nx\n")
    (room / "q.sql").write_text("CREATE STREAM u (a INT) USING csv OPTIONS (path 'u.csv'); SELECT a FROM u;")
    before = sorted(room.iterdir())
    ended = squall("run", "q.sql", "--backend", "local", "--batch-rows", "1", "--out", "result.csv")
    place = "SQ4004 u.csv:2: column \"a\": 'x' is not a valid INT, OPTIONS (on_error 'skip') leaves such rows out\n"
    assert ended == Ended(2, "", place) and sorted(room.iterdir()) == before


def test_a_value_that_fails_at_run_time(room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(f"{STREAM}SELECT CAST(user AS INT) AS n FROM clicks;")
    ended = squall("run", "q.sql", "--backend", "local")
    assert (ended.status, ended.out) == (1, "")
    assert ended.err.startswith("SQ5002 ") and ended.err.count("\n") == 1


def test_a_sum_that_overflows_is_named_as_the_query_has_it(room: Path, squall: Squall) -> None:
    query = "SELECT COUNT(*) AS n FROM (SELECT user, SUM(9223372036854775807) AS total FROM clicks GROUP BY user) q"
    (room / "q.sql").write_text(f"{STREAM}{query} WHERE q.total > 0;")
    ended = squall("run", "q.sql", "--backend", "local")
    told = "SQ5001 SUM(9223372036854775807): 18446744073709551614 does not fit BIGINT, CAST to DECIMAL(38,0) first\n"
    assert ended == Ended(1, "", told)


@pytest.mark.parametrize("optimizer", ["on", "off"])
@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("SELECT CAST(z AS INT) AS a FROM t", "SQ5002 CAST(z AS INT): 3000000000 does not fit INT, TRY_CAST returns"),
        ("SELECT SUM(CAST(z + i AS INT)) AS a FROM t", "SQ5002 CAST(z + i AS INT): 3000000001 does not fit INT"),
        ("SELECT cast(sum(z) as int) AS a FROM t", "SQ5002 CAST(SUM(z) AS INT): 3000000000 does not fit INT"),
        ("SELECT a.i FROM t a JOIN t b ON CAST(a.z AS INT) = b.i", "SQ5002 CAST(z AS INT): 3000000000 does not fit"),
        ("SELECT i FROM t WHERE CAST(p AS DECIMAL(2,1)) > 0", "SQ5002 CAST(p AS DECIMAL(2,1)): -12.50 does not fit"),
        ("SELECT CAST(d AS BIGINT) AS a FROM t", "SQ5002 CAST(d AS BIGINT): 1e+300 does not fit BIGINT, TRY_CAST"),
        ("SELECT FLOOR(d) AS a FROM t", "SQ5002 FLOOR(d): 1e+300 does not fit BIGINT\n"),
        ("SELECT CAST(s AS DATE) AS a FROM t", "SQ5002 CAST(s AS DATE): 'x' does not parse as DATE, TRY_CAST returns"),
        ("SELECT z * 4000000000 AS a FROM t", "SQ5001 z * 4000000000: 12000000000000000000 does not fit BIGINT"),
        (
            "SELECT CAST(z AS DECIMAL(38,0)) * 100000000000000000000000000000 AS a FROM t",
            "SQ5001 CAST(z AS DECIMAL(38,0)) * 100000000000000000000000000000: "
            "300000000000000000000000000000000000000 does not fit DECIMAL(38,0), CAST to DOUBLE first",
        ),
        ("SELECT h, COUNT(*) AS n FROM t GROUP BY h", "SQ5003 h: -9223372034200340039 is reserved"),
        ("SELECT MAX(h + 0) AS n FROM t", "SQ5003 h + 0: -9223372034200340039 is reserved"),
        ("SELECT a.i FROM t a JOIN t b ON a.h < b.h", "SQ5003 h: -9223372034200340039 is reserved"),
    ],
)  # fmt: skip
def test_a_value_without_room_is_named_with_its_expression(
    room: Path, squall: Squall, query: str, told: str, optimizer: str
) -> None:
    (room / "t.csv").write_text("3000000000,1,-12.50,1e300,x,-9223372034200340039\n")
    columns = "z BIGINT, i INT, p DECIMAL(4,2), d DOUBLE, s VARCHAR, h BIGINT"
    (room / "q.sql").write_text(f"CREATE STREAM t ({columns}) USING csv OPTIONS (path 't.csv');\n{query};")
    ended = squall("run", "q.sql", "--backend", "local", "--set", f"optimizer={optimizer}")
    assert (ended.status, ended.out) == (1, "") and ended.err.startswith(told), ended.err


def test_the_reserved_bigint_is_a_value_all_the_same(room: Path, squall: Squall) -> None:
    """It is added up, also where rows go, and grouped as a DECIMAL."""
    (room / "t.csv").write_text("+,-9223372034200340039\n+,-9223372034200340039\n-,-9223372034200340039\n")
    stream = "CREATE STREAM t (h BIGINT) USING csv OPTIONS (path 't.csv', op 'op');\n"
    queries = "SELECT SUM(h) AS s FROM t; SELECT CAST(h AS DECIMAL(19,0)) AS d, COUNT(*) AS n FROM t GROUP BY 1;"
    (room / "q.sql").write_text(stream + queries)
    ended = squall("run", "q.sql", "--backend", "local")
    assert ended == Ended(0, "s\n-9223372034200340039\n\nd,n\n-9223372034200340039,1\n", "")


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
        (FileNotFoundError(errno.ENOENT, "x"), 1),
        (OSError(errno.ENOSPC, "x"), 2),
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
