"""`squall run` and `squall explain` as processes: stdout is data, stderr is talk."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.explain import STAGES
from squallpy.script_session import ScriptSession
from squallpy.terminal.run_command import Choice, RunRequest, choose
from squallpy.terminal.stdout_sinks import StdoutSink
from tests.terminal.conftest import ENVIRONMENT, QUERY, SQUALL, STREAM, Ended, Squall

LOCAL = ("--backend", "local")
MANY = 20_000


def golden_final(squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL)
    assert (ended.status, ended.out, ended.err) == (0, "user,total\nann,1.75\nbob,2.25\n", "")
    assert squall("run", "q.sql", *LOCAL, "--format", "json").out == (
        '{"user": "ann", "total": 1.75}\n{"user": "bob", "total": 2.25}\n'
    )
    assert squall("run", "q.sql", *LOCAL, "--format", "table").out == (
        "user  total\n────  ─────\nann    1.75\nbob    2.25\n"
    )


def golden_changes(squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL, "--mode", "changes", "--batch-rows", "2")
    assert ended.out == "batch,op,user,total\n0,+,ann,1.50\n0,+,bob,2.25\n1,-,ann,1.50\n1,+,ann,1.75\n"
    ended = squall("run", "q.sql", *LOCAL, "--mode", "changes", "--batch-rows", "2", "--format", "json")
    assert ended.out.splitlines()[-1] == '{"batch": 1, "op": "+", "user": "ann", "total": 1.75}'


def golden_changes_with_marks(room: Path, squall: Squall) -> None:
    """Where a batch ends, also one that changes nothing, and a query."""
    options = (*LOCAL, "--mode", "changes", "--batch-rows", "1", "--set", "changes.marks=on")
    (room / "q.sql").write_text(f"{STREAM}SELECT user, amount FROM clicks WHERE user <> 'bob';")
    ended = squall("run", "q.sql", *options)
    assert ended.out == "batch,op,user,amount\n0,+,ann,1.50\n0,=,,\n1,=,,\n2,+,ann,0.25\n2,=,,\n,=,,\n"
    ended = squall("run", "q.sql", *options, "--format", "json")
    assert ended.out.splitlines() == [
        '{"batch": 0, "op": "+", "user": "ann", "amount": 1.50}',
        '{"batch": 0, "op": "="}',
        '{"batch": 1, "op": "="}',
        '{"batch": 2, "op": "+", "user": "ann", "amount": 0.25}',
        '{"batch": 2, "op": "="}',
        '{"batch": null, "op": "="}',
    ]
    ended = squall("run", "q.sql", *options[:-2], "--batch-rows", "2", *options[-2:], "--format", "table")
    assert ended.out.splitlines() == [
        "batch  op  user  amount",
        "─────  ──  ────  ──────",
        "    0  +   ann     1.50",
        "= end of batch 0 of query",
        "batch  op  user  amount",
        "─────  ──  ────  ──────",
        "    1  +   ann     0.25",
        "= end of batch 1 of query",
        "= end of query",
    ]


def test_a_query_that_was_stopped_has_no_mark_of_its_end(room: Path) -> None:
    (query,) = ScriptSession(room / "q.sql").script.queries
    for stopped, marks in ((True, b""), (False, b",=,\n")):
        out = BytesIO()
        output = StdoutSink(out, "csv", True, False, nullcontext, marks=True)
        output.begin(query, pa.schema([("n", pa.int64())]), 2)
        output.finish(stopped)
        assert out.getvalue() == b"batch,op,n\n" + marks


def golden_several_queries_with_a_blank_line_between(room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text(f"{STREAM}{QUERY}SELECT COUNT(*) AS n FROM clicks;")
    assert squall("run", "q.sql", *LOCAL).out == "user,total\nann,1.75\nbob,2.25\n\nn\n3\n"


def test_files_and_metrics_leave_stdout_empty(room: Path, squall: Squall) -> None:
    options = ("--mode", "changes", "--out", "out", "--batch-rows", "2", "--metrics", "m.jsonl")
    ended = squall("run", "q.sql", *LOCAL, *options)
    assert (ended.status, ended.out, ended.err) == (0, "", "")
    assert [f.name for f in sorted((room / "out").glob("batch-*"))] == ["batch-000000.csv", "batch-000001.csv"]
    assert (room / "m.jsonl").read_text().count("\n") == 2
    assert squall("run", "q.sql", *LOCAL, "--out", "r.json").out == ""
    assert (room / "r.json").read_text().startswith('{"user": "ann"')


@pytest.fixture
def run(room: Path, squall: Squall) -> Squall:
    """`squall run q.sql` on any executor: on Spark in a process of its own, for a session may run in this one."""

    def run(*options: str) -> Ended:
        if "spark" not in options:
            return squall("run", "q.sql", *options)
        command = (*SQUALL, "run", "q.sql", *options)
        ended = subprocess.run(command, cwd=room, env=ENVIRONMENT, capture_output=True, text=True)
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    return run


def views(room: Path, run: Squall, *options: str) -> list[dict[str, dict[str, int]]]:
    """What `--metrics` says of the views after each batch."""
    ended = run(*options, "--batch-rows", "2", "--metrics", "m.jsonl", "--profile", "p.json")
    assert (ended.status, ended.out) == (0, "user,total\nann,1.75\nbob,2.25\n")
    lines = [json.loads(line) for line in (room / "m.jsonl").read_text().splitlines()]
    for line in lines:
        assert line["state_bytes"] == sum(view["bytes"] for view in line["views"].values())
        for view in line["views"].values():
            assert view["bytes"] == sum(number for part, number in view.items() if part not in ("records", "bytes"))
    return [line["views"] for line in lines]


EXTREMES = "SELECT user, SUM(amount) AS total FROM clicks GROUP BY user HAVING MAX(day) IS NOT NULL ORDER BY total;\n"
EVERYWHERE = [
    pytest.param(LOCAL, id="local"),
    pytest.param((*LOCAL, "--checkpoint", "kept"), id="durable"),
    pytest.param(("--backend", "spark", "--master", "local[1]"), id="spark", marks=pytest.mark.spark),
]
SPARK_IS_LONG = [
    *EVERYWHERE[:2],
    pytest.param(*EVERYWHERE[2].values, id="spark", marks=[pytest.mark.spark, pytest.mark.long]),
]


EXPECTED = {
    "local": {("feed", "read clicks"), ("statements", "ΔN2"), ("print",)},
    "spark": {
        ("Spark between batches", "write-ahead log"),
        ("job", "plan, schedule, wake Python"),
        ("job", "stage 2", "read clicks"),  # which reads itself: the batches are small
        ("job", "stage 2", "log"),
        ("job", "stage 2", "statements", "ΔN2"),
        ("publish", "result"),
        ("print",),
    },
}


def spans(room: Path) -> set[tuple[str, ...]]:
    """What a profile has of all batches, those of a durable partition also as if it were none."""
    profile = json.loads((room / "p.json").read_text())
    names, whole = [frame["name"] for frame in profile["shared"]["frames"]], profile["profiles"][0]
    assert whole["endValue"] == pytest.approx(sum(whole["weights"])) and min(whole["weights"]) >= 0
    ways = {tuple(names[frame] for frame in sample) for sample in whole["samples"]}
    return ways | {way[1:] for way in ways if way[0] == "apply"}


@pytest.mark.parametrize("options", SPARK_IS_LONG)
def test_metrics_say_what_each_view_takes_and_profiles_where_time_goes(
    options: tuple[str, ...], room: Path, run: Squall
) -> None:
    (room / "q.sql").write_text(STREAM + EXTREMES)
    first, last = views(room, run, *options)
    held = [
        {name: v["records"] for name, v in views.items() if name not in ("first batch", "strings")}
        for views in (first, last)
    ]
    assert held == [
        {"Q": 2, "M_CLICKS": 2, "M_CLICKS_2": 2, "M_N2": 2, "extremes n2": 2},
        {"Q": 2, "M_CLICKS": 2, "M_CLICKS_2": 3, "M_N2": 2, "extremes n2": 2},
    ]
    assert spans(room) >= EXPECTED[options[1]]
    rows = last["M_CLICKS_2"]
    assert rows["keys"] == 3 * 2 * 4 and rows["payloads"] == 3 * 4 and rows["index"] > 0  # keys of 32 bits


TURNS = """CREATE STREAM few (a INT) USING csv OPTIONS (path 'few.csv');
CREATE STREAM many (b INT) USING csv OPTIONS (path 'many.csv');
SELECT (SELECT COUNT(*) FROM few) AS few, (SELECT COUNT(*) FROM many) AS many;
"""


@pytest.mark.parametrize("options", SPARK_IS_LONG)
def test_streams_are_interleaved_as_is_asked_for(options: tuple[str, ...], room: Path, run: Squall) -> None:
    (room / "q.sql").write_text(TURNS)
    (room / "few.csv").write_text("1\n" * 3)
    (room / "many.csv").write_text("1\n" * 9)

    def inserts(order: str) -> list[str]:
        ended = run(*options, "--mode", "changes", "--batch-rows", "4", "--set", f"interleave={order}")
        assert ended.status == 0, ended.err
        return [line for line in ended.out.splitlines() if ",+," in line]

    assert inserts("round-robin") == ["0,+,2,2", "1,+,3,5", "2,+,3,9"]
    if options == LOCAL:
        assert inserts("largest-last") == ["0,+,3,1", "1,+,3,5", "2,+,3,9"]
        assert inserts("proportional") == ["0,+,1,3", "1,+,2,6", "2,+,3,9"]


def test_skipped_rows_are_always_said(room: Path, squall: Squall) -> None:
    with (room / "clicks.csv").open("a") as file:
        file.write("eve,many,2024-01-04\n")
    (room / "q.sql").write_text(STREAM.replace("'true'", "'true', on_error 'skip'") + QUERY)
    ended = squall("run", "q.sql", *LOCAL)
    assert (ended.status, ended.err) == (0, "1 row skipped\n")
    assert ended.out == "user,total\nann,1.75\nbob,2.25\n"


def test_a_regression_that_is_not_determined_is_said_once(room: Path, squall: Squall) -> None:
    streams = "CREATE STREAM r (g INT, x INT, u INT, `y´` INT) USING csv OPTIONS (path 'r.csv', header 'false');\n"
    (room / "r.csv").write_text("1,1,1,3\n1,2,1,5\n1,3,1,8\n1,4,2,1\n2,1,1,1\n2,2,2,2\n")
    said = (
        'batch 0: X\'X for "y´" is singular and has no inverse: features are constant or collinear; '
        "all of ols that needs it is empty until it is regular\n"
    )
    query = "SELECT COUNT(*) AS n FROM ols(TABLE(SELECT g, x, u, `y´` FROM r) PARTITION BY g, 'Y´', "
    for option, rows, told in (("ridge => 1", 4, ""), ("intercept => TRUE", 3, said)):
        (room / "q.sql").write_text(f"{streams}{query}{option});")
        ended = squall("run", "q.sql", *LOCAL, "--batch-rows", "1", "--metrics", "m.json")
        assert (ended.status, ended.out, ended.err) == (0, f"n\n{rows}\n", told)
    found = [json.loads(line).get("singular") for line in (room / "m.json").read_text().splitlines()]
    assert found == [{"y´": 1}] * 3 + [None] + [{"y´": 1}] * 2


def test_late_rows_are_said_and_written(room: Path, squall: Squall) -> None:
    (room / "s.csv").write_text(
        "a,at\n1,2026-01-01 00:00:00\n2,2026-01-01 00:00:30\n\u2028,2026-01-01 00:00:09\n4,\n5,2026-01-01 00:00:31\n"
    )
    (room / "q.sql").write_text(
        "CREATE STREAM s (a VARCHAR, at TIMESTAMP) USING csv OPTIONS (path 's.csv', header 'true') TIMESTAMP BY at;"
        "SELECT COUNT(*) AS n FROM s RANGE 20 SEC;"
    )
    late = (
        'batch,stream,row\n2,s,"{""a"": ""\u2028"", ""at"": ""2026-01-01 00:00:09""}"\n'
        '3,s,"{""a"": ""4"", ""at"": null}"\n'
    )
    for _ in range(2):  # the second time, all batches have been before
        options = ("--batch-rows", "1", "--late", "late.csv", "--checkpoint", "kept")
        ended = squall("run", "q.sql", *LOCAL, *options)
        assert (ended.status, ended.out) == (0, "n\n2\n")
        assert (room / "late.csv").read_text() == late
    assert squall("run", "q.sql", *LOCAL, "--batch-rows", "1").err == "2 rows late\n"


def test_mode_and_format_follow_the_terminal() -> None:
    def choice(terminal: bool, **options: object) -> Choice:
        return choose(RunRequest(Path("q.sql"), **options), terminal)  # type: ignore[arg-type]

    assert choice(True) == Choice("live", "table")
    assert choice(False) == Choice("final", "csv")
    assert choice(True, format="csv") == Choice("final", "csv")
    assert choice(True, format="table") == Choice("live", "table")
    assert choice(True, mode="changes") == Choice("changes", "table")
    assert choice(True, out=Path("r.parquet")) == Choice("final", "parquet")
    assert choice(False, out=Path("r"), mode="changes", format="json") == Choice("changes", "json")
    with pytest.raises(SquallError, match="SQ7003 --mode live shows a table, not csv"):
        choice(True, mode="live", format="csv")
    dumb = RunRequest(Path("q.sql"))
    assert choose(dumb, terminal=True, redraws=False) == Choice("final", "table")
    with pytest.raises(SquallError, match="SQ7003 --mode live redraws its table"):
        choose(replace(dumb, mode="live"), terminal=True, redraws=False)


def many(room: Path) -> None:
    """A stream that takes its time when it comes a row at a time."""
    (room / "clicks.csv").write_text("user,amount,day\n" + "ann,1.50,2024-01-01\n" * MANY)


def interrupted(room: Path, *options: str) -> tuple[int, str, str]:
    """A run that gets Ctrl-C when its first batches are out."""
    command = (*SQUALL, "run", "q.sql", *LOCAL, "--batch-rows", "1", "--mode", "changes", *options)
    with subprocess.Popen(
        command, cwd=room, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        first = "".join(process.stdout.readline() for _ in range(3))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
        return process.returncode, first + out, err


def test_ctrl_c_finishes_the_batch_and_the_next_run_goes_on(room: Path) -> None:
    many(room)
    status, out, err = interrupted(room, "--checkpoint", "kept")
    done = int(out.splitlines()[-1].split(",")[0]) + 1
    assert status == 130
    assert err.splitlines() == [
        "finishing the batch in work; Ctrl-C again to stop at once",
        f"stopped after {done:,} of {MANY:,} batches; the same command goes on from there, with --checkpoint kept",
    ]
    status, out, _ = interrupted(room, "--checkpoint", "kept")
    assert status == 130
    assert out.splitlines()[1].startswith(f"{done},-,ann,")


def test_ctrl_c_without_a_checkpoint_says_what_is_lost(room: Path) -> None:
    many(room)
    status, _, err = interrupted(room)
    assert status == 130
    assert err.endswith("batches; without --checkpoint nothing is kept, the next run starts from the beginning\n")


def test_without_an_end_changes_are_printed() -> None:
    endless = RunRequest(Path("q.sql"))
    assert choose(endless, terminal=True, endless="r") == Choice("live", "table")
    assert choose(endless, terminal=False, endless="r") == Choice("changes", "csv")
    assert choose(replace(endless, out=Path("o.json")), terminal=True, endless="r") == Choice("changes", "json")
    with pytest.raises(
        SquallError, match="SQ7003 --mode final prints the answer at the end, and the stream r has none"
    ):
        choose(replace(endless, mode="final"), terminal=False, endless="r")


def watch(room: Path) -> str:
    """Let the script of the room watch its file, which gets a row more; returns what is printed then."""
    script = (room / "q.sql").read_text()
    (room / "q.sql").write_text(script.replace("header 'true'", "header 'true', watch 'true'"))
    return "batch,op,user,total\n0,+,ann,1.75\n0,+,bob,2.25\n1,-,bob,2.25\n1,+,bob,3.25\n"


def test_sigterm_ends_what_has_no_end(room: Path) -> None:
    """After the batch in work, with exit status 0; a bounded run then says 143."""
    out = watch(room)
    command = (*SQUALL, "run", "q.sql", *LOCAL)
    with subprocess.Popen(
        command, cwd=room, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        first = "".join(process.stdout.readline() for _ in range(3))
        with (room / "clicks.csv").open("a") as clicks:
            clicks.write("bob,1.00,2024-01-04\n")
        first += "".join(process.stdout.readline() for _ in range(2))
        process.terminate()
        rest, err = process.communicate(timeout=600)
    assert (process.returncode, first + rest) == (0, out)
    assert err.splitlines() == [
        "the stream clicks has no end, and without --checkpoint nothing is kept",
        "finishing the batch in work; Ctrl-C again to stop at once",
        "stopped after 2 batches; without --checkpoint nothing is kept, the next run starts from the beginning",
    ]


def test_all_that_is_available_now(room: Path, squall: Squall) -> None:
    watch(room)
    for trigger in ("available-now", "ONCE"):
        ended = squall("run", "q.sql", *LOCAL, "--mode", "final", "--trigger", trigger)
        assert (ended.status, ended.out, ended.err) == (0, "user,total\nann,1.75\nbob,2.25\n", "")


def fault_a_trigger_without_a_stream_that_has_no_end(squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL, "--trigger", "once")
    assert ended.status == 2
    assert ended.err == "SQ7003 --trigger is for streams without end, declare one with watch 'true'\n"


@pytest.mark.parametrize("mode", [("--mode", "changes"), ()])
def fault_changes_of_two_queries_on_stdout(mode: tuple[str, ...], room: Path, squall: Squall) -> None:
    if not mode:
        watch(room)
    (room / "q.sql").write_text((room / "q.sql").read_text() + QUERY)
    ended = squall("run", "q.sql", *LOCAL, *mode)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == (
        "SQ7003 --mode changes prints one query, and 2 have no sink, "
        "--out DIR has a folder for each; or give them sinks\n"
    )


@pytest.mark.parametrize(
    ("declaration", "message"),
    [
        ("TABLE t (a INT) USING csv OPTIONS (path 't', watch 'true')", "a TABLE does not change and is not watched"),
        ("STREAM t (a INT) USING csv OPTIONS (path 't', watch 'yes')", 'option "watch" cannot be "yes"'),
        (
            "STREAM t (a INT) USING csv OPTIONS (path 't', watch 'true', maxFilesPerTrigger '0')",
            'option "maxFilesPerTrigger" cannot be "0"',
        ),
        (
            "STREAM t (a INT) USING csv OPTIONS (path 't', maxFilesPerTrigger '5')",
            "maxFilesPerTrigger is for a stream that is watched",
        ),
        (
            "STREAM t (a INT) USING csv OPTIONS (path 't', maxbytespertrigger '5')",
            "maxBytesPerTrigger is for a stream that is watched",
        ),
    ],
)
def fault_options_of_a_watched_stream(room: Path, squall: Squall, declaration: str, message: str) -> None:
    (room / "q.sql").write_text(f"CREATE {declaration}; SELECT a FROM t;")
    ended = squall("run", "q.sql", *LOCAL)
    assert ended.status == 2 and ended.err.startswith("SQ7002 q.sql:1:") and message in ended.err


def test_a_reader_that_leaves_is_no_error(room: Path) -> None:
    many(room)
    command = (*SQUALL, "run", "q.sql", *LOCAL, "--batch-rows", "1", "--mode", "changes")
    with subprocess.Popen(
        command, cwd=room, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=600) == 141


def on_a_terminal(room: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """Exit status, and all that the terminal was sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        (*SQUALL, *arguments), cwd=room, env=ENVIRONMENT | environment, stdout=theirs, stderr=theirs, stdin=theirs
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not part:
            break
        said += part
    os.close(ours)
    return process.wait(timeout=600), said.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_live_table_that_is_gone_at_the_end(room: Path) -> None:
    status, said = on_a_terminal(room, "run", "q.sql", *LOCAL, "--batch-rows", "1")
    live, end = said.rsplit("\x1b[2K", 1)
    assert status == 0
    assert "batch 1 of 3" in live and "ann" in live
    assert end.startswith("\x1b[1muser  total\x1b[0m\n────  ─────\nann    1.75\nbob    2.25\n3 tuples in ")
    _, plain = on_a_terminal(room, "run", "q.sql", *LOCAL, "--mode", "final", NO_COLOR="1")
    assert plain.startswith("user  total\n") or "\x1b[2Kuser  total\n" in plain
    assert "\x1b[1m" not in plain


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"JPY_PARENT_PID": "1", "TERM": "xterm-color"}])
def test_no_cursor_is_moved_where_none_is(environment: dict[str, str], room: Path) -> None:
    """A dumb terminal, and the cell of a notebook, which has one, too, and shows whatever it is sent."""
    many(room)
    status, said = on_a_terminal(room, "run", "q.sql", *LOCAL, "--batch-rows", "10", **environment, NO_COLOR="1")
    assert (status, said) == (0, "user     total\n────  ────────\nann   30000.00\n")


def test_a_terminal_gets_a_caret(room: Path) -> None:
    (room / "q.sql").write_text(f"{STREAM}SELECT usr FROM clicks;\n")
    status, said = on_a_terminal(room, "explain", "q.sql")
    assert status == 2
    assert said.rsplit("\x1b[2K", 1)[-1] == (  # NB: a slow machine shows that it is compiling
        'SQ2003 q.sql:3:8: unknown column "usr", did you mean "user"?\n    SELECT usr FROM clicks;\n           ^^^\n'
    )


def test_explain_at_every_stage(squall: Squall) -> None:
    texts = [squall("explain", stage, "q.sql").out for stage in STAGES]
    assert all(texts) and len(set(texts)) >= len(STAGES) - 1
    assert squall("explain", "q.sql").out == texts[STAGES.index("triggers")]


def test_options_are_in_any_case(squall: Squall) -> None:
    plain = squall("run", "q.sql", *LOCAL, "--mode", "changes", "--format", "json", "--set", "optimizer=off").out
    assert plain
    given = ("--backend", "LOCAL", "--mode", "Changes", "--format", "JSON", "--set", "Optimizer=OFF")
    assert squall("run", "q.sql", *given).out == plain
    assert squall("explain", "Physical", "q.sql", "--set", "join.operator=DYNAMIC").out == (
        squall("explain", "physical", "q.sql", "--set", "join.operator=Dynamic").out
    )


def test_explain_needs_no_data(room: Path, squall: Squall) -> None:
    (room / "clicks.csv").unlink()
    ended = squall("explain", "q.sql")
    assert (ended.status, ended.err) == (0, "") and ended.out


def test_help_loads_nothing_heavy() -> None:
    command = (sys.executable, "-X", "importtime", *SQUALL[1:], "--help")
    ended = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    heavy = {"pyarrow", "numpy", "pandas", "numba", "pyspark", "sqlglot", "lark", "rich", "squallpy.script_session"}
    assert not heavy & {line.split("|")[-1].strip() for line in ended.stderr.splitlines()}
    assert ended.stdout.startswith("Usage: squall")


INFERRING = "CREATE STREAM c USING csv OPTIONS (path 'clicks.csv', header 'true'); SELECT UPPER('x') AS x FROM c;"


@pytest.mark.parametrize("script", ["", INFERRING])
def test_a_local_run_loads_nothing_that_no_query_uses(script: str, room: Path) -> None:
    if script:
        (room / "q.sql").write_text(script)
    unused = ("pandas", "numba.np.arraymath", "squallpy.maintain.matrix", "squallpy.maintain.factorised")
    ended = run_and_list(room, *unused, "pyspark", "rich")
    assert (ended.returncode, ended.stderr.strip()) == (0, "") and ended.stdout


def test_a_mistake_is_told_without_loading_kernels(room: Path) -> None:
    (room / "q.sql").write_text("SELECT 1 FROMM clicks;")
    ended = run_and_list(room, "numba", "pandas", "pyspark")
    assert ended.stderr.startswith("SQ1001 ") and ended.stderr.endswith("\n\n")


def run_and_list(room: Path, *modules: str) -> subprocess.CompletedProcess[str]:
    """Run q.sql in a process that lists on stderr which of these modules it has loaded."""
    program = (
        "import sys; from squallpy.terminal.cli import main; main(['run', '--backend', 'local', 'q.sql']);"
        f"print(*{set(modules)!r} & set(sys.modules), file=sys.stderr)"
    )
    return subprocess.run((sys.executable, "-c", program), env=ENVIRONMENT, cwd=room, capture_output=True, text=True)


def test_version_options_and_doctor(squall: Squall) -> None:
    assert squall("--version").out.startswith("squall 0.")
    listed = squall("options").out.splitlines()
    assert listed[0].split() == ["name", "type", "default", "meaning"]
    assert ["batch_rows", "int", "10000", "tuples", "per", "micro-batch"] in [line.split()[:6] for line in listed]
    examined = squall("doctor")
    assert examined.status in (0, 3)
    assert all(line[:4] in ("ok  ", "✗   ") for line in examined.out.splitlines())
    assert "ok  Python 3." in examined.out


def test_a_locale_without_letters_beyond_ascii(tmp_path: Path) -> None:
    """Scripts, what files have and answers are UTF-8 there, too."""
    (tmp_path / "r.csv").write_text("é,1\n日本,2\n", encoding="utf-8")
    script = "CREATE STREAM r (a STRING, n INT) USING csv OPTIONS (path 'r.csv'); SELECT a, n FROM r WHERE a <> 'ü';"
    (tmp_path / "q.sql").write_text(script, encoding="utf-8")
    plain = {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    given = [sys.executable, "-m", "squallpy.terminal", "run", "q.sql", "--backend", "local"]
    done = subprocess.run(given, cwd=tmp_path, env=os.environ | plain, capture_output=True)
    assert done.stdout.decode() == "a,n\né,1\n日本,2\n" and done.returncode == 0, done.stderr
