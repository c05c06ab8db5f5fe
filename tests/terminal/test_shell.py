"""`squall -c 'SQL'` and `squall < file`: statement by statement, and what each prints."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from squallpy.terminal.statement_reader import Entry, is_complete, read_entries
from tests.terminal.conftest import CLICKS, QUERY, STREAM, Ended, Squall

VIEW = "CREATE MATERIALIZED VIEW counts AS SELECT user, COUNT(*) AS n FROM clicks GROUP BY user;\n"
Piped = Callable[..., Ended]


@pytest.fixture
def piped(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> Piped:
    """`squall < file`, with the file's text."""

    def run(text: str | bytes, *arguments: str) -> Ended:
        data = text.encode() if isinstance(text, str) else text
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        return squall(*arguments)

    return run


def test_statements_are_read_as_they_become_complete() -> None:
    def read(text: str) -> list[tuple[str, int, int, bool]]:
        entries = read_entries(text.splitlines(keepends=True))
        return [(each.text, each.line, each.column, each.is_command) for each in entries]

    assert read("SELECT 1; SELECT\n 2;\n.mode csv\n\nSELECT 3") == [
        ("SELECT 1", 0, 0, False), ("SELECT\n 2", 0, 10, False), (".mode csv", 2, 0, True), ("SELECT 3", 4, 0, False),
    ]  # fmt: skip
    assert read("SELECT ';\n.mode csv\n' -- ;\n; \\d\n") == [
        ("SELECT ';\n.mode csv\n'", 0, 0, False),
        ("\\d", 3, 2, False),
    ]
    assert read("-- nothing\n.tables\n/* ; */ \n") == [(".tables", 1, 0, True)]
    assert read("") == read(" ;;\n; \n") == []
    assert Entry("SELECT 1", 2, 3).position == (2, 3)
    rows = iter(["SELECT 1;\n", "SELECT 2;\n"])
    first = next(read_entries(rows))
    assert first.text == "SELECT 1" and next(rows) == "SELECT 2;\n"  # NB: no line is waited for before it is needed


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ("", True), ("SELECT 1", False), ("SELECT 1;", True), ("SELECT ';", False), ("SELECT 1; SELECT 2", False),
        (".mode", True), ("\\d x", True), ("SELECT 1;\n.mode csv", True), ("SELECT\n.mode csv", False), ("-- x", True),
        ("CREATE VIEW v AS $$ a;\nb;", False), ("SELECT 1; -- done", True),
    ],
)  # fmt: skip
def test_a_text_is_complete_with_its_semicolon(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


def golden_a_select_over_streams_is_printed_when_they_have_ended(squall: Squall, piped: Piped) -> None:
    assert squall("-c", STREAM + QUERY) == Ended(0, "user,total\nann,1.75\nbob,2.25\n", "")
    assert piped(STREAM + QUERY) == Ended(0, "user,total\nann,1.75\nbob,2.25\n", "")


def golden_statements_of_several_commands_are_in_one_session(squall: Squall) -> None:
    ended = squall("-c", STREAM + VIEW, "-c", "SELECT * FROM counts", "-c", "SELECT SUM(n) AS n FROM counts;")
    assert ended == Ended(0, "user,n\nann,2\nbob,1\n\nn\n3\n", "")


def golden_an_error_ends_neither_the_session_nor_what_follows(piped: Piped) -> None:
    ended = piped(
        f"{STREAM}SELECT usr FROM clicks;\n{VIEW}SELEC 1; SELECT n FROM counts WHERE user = 'ann';\n.tabels\n"
    )
    assert (ended.status, ended.out) == (2, "n\n2\n")
    first, second, third = ended.err.splitlines()
    assert first == 'SQ2003 <stdin>:3:8: unknown column "usr", did you mean "user"?'
    assert second.startswith('SQ1001 <stdin>:5:1: unexpected "SELEC"')
    assert third == 'SQ7004 <stdin>:6:1: unknown command ".tabels", did you mean ".tables"?'


def golden_a_batch_that_fails_takes_only_its_query_with_it(piped: Piped) -> None:
    fails = "CAST(user AS INT)"
    ended = piped(
        f"{STREAM}{VIEW}SELECT {fails} AS i FROM clicks;\n"
        f"CREATE MATERIALIZED VIEW bad AS SELECT {fails} AS i FROM clicks;\nSELECT * FROM counts; SELECT * FROM bad;"
    )
    assert (ended.status, ended.out) == (1, "user,n\nann,2\nbob,1\n")
    codes = [line.split()[0] for line in ended.err.splitlines()]
    assert codes == ["SQ5002", "SQ5002", "SQ2001"]


def test_the_exit_status_is_that_of_the_first_error(squall: Squall) -> None:
    assert squall("-c", "SELECT 1 AS x").status == 0
    assert squall("-c", "SELECT 1 / 0 AS x; SELEC").status in (0, 2)
    assert squall("-c", "SELEC; SELECT 1 AS x").status == 2


def golden_formats(squall: Squall) -> None:
    select = "SELECT 1 AS x, CAST(NULL AS VARCHAR) AS t, 'a,b' AS u"
    assert squall("-c", select).out == 'x,t,u\n1,,"a,b"\n'
    assert squall("-c", select, "--format", "json").out == '{"x": 1, "t": null, "u": "a,b"}\n'
    assert squall("-c", select, "--format", "table").out == "x  t     u\n─  ────  ───\n1  NULL  a,b\n"
    assert squall("-c", select, "--format", "line").out == "x = 1\nt = NULL\nu = a,b\n"
    assert squall("-c", ".mode json", "-c", select, "-c", ".mode duckbox", "-c", select).out == (
        '{"x": 1, "t": null, "u": "a,b"}\n\nx  t     u\n─  ────  ───\n1  NULL  a,b\n'
    )
    assert 'unknown mode "jsn", did you mean "json"?' in squall("-c", ".mode jsn").err


def golden_changes_of_a_view_until_its_input_ends(squall: Squall) -> None:
    ended = squall("--set", "batch_rows=2", "-c", STREAM, "-c", VIEW, "-c", "SUBSCRIBE counts WITH SNAPSHOT")
    assert ended.out == "batch,op,user,n\n2,+,ann,2\n2,+,bob,1\n"


def golden_explain_show_and_describe(squall: Squall) -> None:
    ended = squall("-c", STREAM + VIEW, "-c", "DESCRIBE counts; SHOW TABLES", "-c", "\\d counts", "-c", "\\d")
    columns = "column,type,nullable\nuser,VARCHAR,YES\nn,BIGINT,NO\n"
    tables = "name,kind\nclicks,stream\ncounts,materialized view\n"
    assert ended.out == f"{columns}\nname,format,columns\n\n{columns}\n{tables}"
    assert "ON UPDATE CLICKS" in squall("-c", STREAM + VIEW, "-c", ".plan counts").out
    assert "ON UPDATE CLICKS" in squall("-c", STREAM + VIEW, "-c", "EXPLAIN counts").out
    assert squall("-c", STREAM + VIEW, "-c", ".stats").out == "view,rows,batches\ncounts,2,2\n"


def golden_a_file_is_read_and_results_are_written(squall: Squall, room: Path) -> None:
    ended = squall(
        "-c", ".read q.sql", "-c", ".output r.json", "-c", "SELECT 1 AS x", "-c", ".output", "-c", "SELECT 2 AS x"
    )
    assert ended == Ended(0, "user,total\nann,1.75\nbob,2.25\n\nx\n2\n", "")
    assert json.loads((room / "r.json").read_text()) == {"x": 1}
    (room / "circle.sql").write_text(".read circle.sql\n")
    ended = squall("-c", ".read circle.sql")
    assert ended.status == 2 and "read each other" in ended.err and len(ended.err.splitlines()) == 1
    assert "did you mean" in squall("-c", ".read p.sql").err
    assert squall("-c", ".output no/such").err.startswith("SQ7005 <command>:1:1: cannot write no/such")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (".tabels", 'unknown command ".tabels", did you mean ".tables"?'),
        ("\\timin", 'unknown command "\\timin", did you mean "\\timing"?'),
        (".xyzzyx", 'unknown command ".xyzzyx", .help lists the commands'),
        (".mode a b", ".mode has 2 arguments, write .mode [FORMAT]"),
        (".plan", ".plan has 0 arguments, write .plan VIEW [STAGE]"),
        (".timer maybe", '.timer is on or off, not "maybe"'),
        (".maxrows x", '.maxrows is a number, not "x"'),
        (".watch", ".watch needs a terminal"),
        (".schema nothing", 'unknown stream or table or view "nothing"'),
        (".stop q", 'unknown live query "q"'),
        (".read 'x", "a quote that is not closed"),
    ],
)  # fmt: skip
def fault_commands(squall: Squall, command: str, error: str) -> None:
    ended = squall("-c", command)
    assert ended.status == 2 and error in ended.err and ended.err.startswith(("SQ7", "SQ2", "SQ1"))
    assert "<command>:1:1:" in ended.err and ended.err.count("\n") == 1


def golden_help_lists_all_commands(squall: Squall) -> None:
    text = squall("-c", ".help").out
    assert " ".join(text.splitlines()[1].split()) == ".tables \\d \\dt streams, tables, views, sinks and functions"
    assert squall("-c", "\\? timer").out.split()[:3] == [".timer", "[on|off]", "\\timing"]
    assert squall("-c", ".help tmer").err.endswith('did you mean ".timer"?\n')


def test_leaving_leaves_the_rest(squall: Squall) -> None:
    assert (
        squall("-c", "SELECT 1 AS x; SELECT 2 AS x;\n.quit\nSELECT 3 AS x", "-c", "SELECT 4 AS x").out
        == "x\n1\n\nx\n2\n"
    )


def test_the_timer_tells_each_statement_on_stderr(squall: Squall) -> None:
    ended = squall("-c", ".timer on\nSELECT 1 AS x; SELECT 2 AS x;\n.timer off\nSELECT 3 AS x")
    assert [line.split()[1] for line in ended.err.splitlines()] == ["s", "s"]


def test_sinks_have_all_rows_at_the_end(squall: Squall, room: Path) -> None:
    sink = "CREATE SINK o USING csv OPTIONS (path 'out') AS SELECT user, amount FROM clicks;"
    assert squall("-c", STREAM + sink) == Ended(0, "", "")
    rows = [line for path in sorted((room / "out").glob("*.csv")) for line in path.read_text().splitlines()[1:]]
    assert len(rows) == 3


def test_ten_thousand_statements_are_read_in_one_go(piped: Piped) -> None:
    lines = ["-- a; line\n", "\n"] * 2_500 + ["SET batch_rows = 7;\n"] * 5_000
    ended = piped("".join(lines) + "SELEC;")
    assert ended.err.startswith("SQ1001 <stdin>:10001:1:") and ended.err.count("\n") == 1


def fault_input_that_is_no_text(piped: Piped, squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = piped(b"SELECT 1 AS x;\nSELECT \xff;\n")
    assert (
        ended.out == "x\n1\n"
        and ended.err.startswith("SQ4001 <stdin>:2:8: this is not UTF-8 text")
        and ended.status == 2
    )
    monkeypatch.setattr(sys, "stdin", None)
    assert squall().err == "SQ4001 cannot read statements from stdin: it is closed\n"


def fault_commands_and_options_that_do_not_go_together(squall: Squall) -> None:
    assert squall("-c", "SELECT 1", "options").err.startswith("SQ7004 -c is given, and the command options")
    assert squall("--format", "parquet").status == 2
    assert squall("--set", "batch_row=2", "-c", "SELECT 1").err.startswith('SQ7001 unknown setting "batch_row"')


def test_a_stream_that_always_has_more_is_read_as_far_as_it_has_come(squall: Squall, room: Path) -> None:
    (room / "in").mkdir()
    (room / "in" / "a.csv").write_text(CLICKS)
    watched = STREAM.replace("clicks.csv'", "in/', watch 'true'")
    assert squall("-c", watched + QUERY).out == "user,total\nann,1.75\nbob,2.25\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(squall: Squall, monkeypatch: pytest.MonkeyPatch, shell: str) -> None:
    monkeypatch.setenv("_SQUALL_COMPLETE", f"{shell}_source")
    ended = squall()
    assert ended.status == 0 and "_squall_completion" in ended.out
    monkeypatch.setenv("_SQUALL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "squall run --bac")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert squall() == Ended(0, "plain,--backend\n", "")


def test_a_session_goes_on_with_its_checkpoint(squall: Squall, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("1,2\n1,3\n")
    create = f"CREATE STREAM r (a INT, v INT) USING csv OPTIONS (path '{tmp_path}/r.csv');"
    create += "CREATE MATERIALIZED VIEW s AS SELECT a, SUM(v) AS v FROM r GROUP BY a"
    kept = str(tmp_path / "kept")
    assert squall("--checkpoint", kept, "-c", create).status == 0
    assert squall("--checkpoint", kept, "-c", "SELECT * FROM s") == Ended(0, "a,v\n1,5\n", "")
