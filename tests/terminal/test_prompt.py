"""The prompt in a terminal: what is typed, and what is shown."""

from pathlib import Path
from unittest.mock import Mock

import pytest

from squallpy.base.settings import Settings
from squallpy.terminal import prompt
from squallpy.terminal.failures import Interrupted
from squallpy.terminal.result_printer import ResultPrinter
from squallpy.terminal.shell import SessionRequest
from tests.terminal.conftest import CLICKS, STREAM
from tests.terminal.typist import CTRL_C, CTRL_D, ENTER, TAB, Typist

WATCHED = STREAM.replace("clicks.csv'", "in/', watch 'true'").replace("\n", " ").strip()
SUMS = "SELECT user, SUM(amount) AS total FROM clicks GROUP BY user;"
COUNTS = "CREATE MATERIALIZED VIEW counts AS SELECT user, COUNT(*) AS n FROM clicks GROUP BY user;"


@pytest.fixture
def watched(tmp_path: Path) -> Path:
    """A room with a folder that is watched, in which one file is."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(CLICKS)
    return tmp_path


def golden_statements_at_a_prompt(room: Path) -> None:
    with Typist(room) as typist:
        typist.wait(r"squall \S+, \.help lists the commands, Ctrl-D leaves\n")
        typist.wait("squall> ")
        for line in STREAM.splitlines():
            typist.type(line + ENTER)
        assert "   ...> " in typist.wait("\nCREATE STREAM\n")
        assert typist.run(SUMS, r"2\.25\n2 rows\n").endswith(
            "\nuser  total\n────  ─────\nann    1.75\nbob    2.25\n2 rows\n"
        )
        typist.run(COUNTS, "\nCREATE MATERIALIZED VIEW\n")
        shown = typist.run("SELECT usr FROM counts;", r"\^\^\^\n")
        assert 'SQ2003 prompt:1:8: unknown column "usr", did you mean "user"?\n    SELECT usr FROM counts\n' in shown
        assert typist.run("SELECT n FROM counts; SELECT 1 AS x;", "1 row\n").count("row") == 2
        assert "did you mean" in typist.run(".tabels", r"\?\n")
        typist.wait("squall> ")
        typist.type("SELECT nonsense" + CTRL_C)
        typist.run("SUBSCRIBE counts WITH SNAPSHOT;", "bob   1\n")
        typist.interrupt()
        typist.wait("squall> ")
        typist.type(CTRL_D)
        typist.wait("counts ends here\n")
        assert typist.end() == 0


def golden_live_queries_go_on_when_they_are_left(watched: Path) -> None:
    with Typist(watched) as typist:
        typist.run(WATCHED, "\nCREATE STREAM\n")
        typist.run(SUMS, r"ann +1\.75\nbob +2\.25\nbatch \d+  3 tuples  2 rows")
        (watched / "in" / "b.csv").write_text("user,amount,day\nbob,1.00,2024-01-04\n")
        typist.wait(r"bob +3\.25\nbatch \d+  4 tuples  2 rows")
        typist.interrupt()
        typist.wait("query1 goes on: .watch query1 shows it, .stop query1 ends it\n")
        typist.run("SELECT COUNT(*) AS n FROM clicks;", r"n\n─\n4\nbatch")
        typist.interrupt()
        typist.run("SELECT total, n FROM query1 CROSS JOIN query2 WHERE user = 'bob';", r" 3\.25  4\n1 row\n")
        (watched / "in" / "c.csv").write_text("user,amount,day\nbob,1.00,2024-01-04\n")
        typist.run(".watch query2", r"n\n─\n5\nbatch")
        typist.interrupt()
        typist.run(".stop query1", "")
        typist.run(".views", "query2  materialized view  SELECT COUNT.*1 row\n")
        typist.run(".stop query1", 'unknown live query "query1"')
        typist.run(".quit", "query2 ends here\n")
        assert typist.end() == 0


def test_a_batch_that_fails_is_told_at_once_and_takes_its_query_with_it(watched: Path) -> None:
    with Typist(watched) as typist:
        typist.run(WATCHED, "\nCREATE STREAM\n")
        typist.run(COUNTS, "\nCREATE MATERIALIZED VIEW\n")
        typist.run(
            "CREATE MATERIALIZED VIEW numbers AS "
            "SELECT CAST(REPLACE(REPLACE(user, 'ann', '1'), 'bob', '2') AS INT) AS i FROM clicks;",
            "\nCREATE MATERIALIZED VIEW\n",
        )
        typist.wait("squall> ")
        typist.type("SELECT n FROM ")
        (watched / "in" / "b.csv").write_text("user,amount,day\ncid,7.00,2024-01-04\n")
        typist.wait("SQ5.*the batch failed, and numbers went with it\n.*squall> SELECT n FROM")
        typist.type("counts WHERE user = 'cid';" + ENTER)
        typist.wait("n\n─\n1\n1 row\n")
        typist.run("SELECT * FROM numbers;", "SQ2001")


def test_a_view_that_fills_is_left_to_the_background(tmp_path: Path) -> None:
    rows = "".join(f"u{i},1.00,2024-01-01\n" for i in range(400_000))
    (tmp_path / "clicks.csv").write_text("user,amount,day\n" + rows)
    with Typist(tmp_path, "--set", "batch_rows=50") as typist:
        typist.run(STREAM.replace("\n", " "), "\nCREATE STREAM\n")
        typist.run("CREATE MATERIALIZED VIEW counts AS SELECT COUNT(*) AS n FROM clicks;", "counts AS.*\n")
        typist.wait_for_progress("batch ")
        typist.interrupt()
        assert b" of 0" not in typist.raw  # NB: nobody knows how many batches there will be
        typist.wait("it goes on in the background\n")
        typist.run(".watch counts", "400000\nbatch")
        typist.interrupt()
        typist.run("SELECT n FROM counts;", "400000\n1 row\n")
        typist.run(".watch 0.1", "(400000\n1 row.*){2}")
        typist.interrupt()
        typist.run(".quit", "counts ends here\n")


def test_ten_thousand_lines_are_pasted(room: Path) -> None:
    with Typist(room) as typist:
        typist.wait("squall> ")
        settings = "".join(f"SET batch_rows = {i + 1};\n" for i in range(1_000))
        typist.paste(settings + "SELECT -- a comment;\n" + "'\n' AS line,\n" * 4_500 + "42 AS answer;")
        typist.type(ENTER)
        typist.wait("SET\nline .*1 row, [0-9]+ of 4501 columns not shown")


@pytest.mark.parametrize("columns", [20, 10])
def test_narrow_terminals(room: Path, columns: int) -> None:
    with Typist(room, columns=columns, rows=8) as typist:
        typist.run("SELECT 'a long text' AS a, 2 AS b;", "")
        typist.wait("1 row")
        typist.run(f"SELECT {', '.join(f'{i} AS c{i}' for i in range(200))};", "")
        typist.wait("of 200 columns not shown")


def test_completion(room: Path) -> None:
    with Typist(room) as typist:
        typist.run(STREAM.replace("\n", " "), "\nCREATE STREAM\n")
        typist.wait("squall> ")
        typist.type("SELECT amo" + TAB)
        typist.wait("unt")
        typist.type(" FROM cli" + TAB)
        typist.wait(r"cks(?!\s*:)")  # NB: the menu of the column before has the name of its table, too
        typist.type(" WHERE user = 'bob';" + ENTER)
        typist.wait(r"2\.25")


def test_no_colour(room: Path) -> None:
    with Typist(room, NO_COLOR="1") as typist:
        typist.run("SELECT 1 AS x;", "1 row\n")
        assert b"\x1b[1m" not in typist.raw and b";3" not in typist.raw
    with Typist(room) as typist:
        typist.run("SELECT 1 AS x;", "1 row\n")
        assert b"\x1b[1m" in typist.raw


def golden_a_terminal_without_a_cursor(room: Path) -> None:
    with Typist(room, TERM="dumb") as typist:
        typist.run(STREAM.replace("\n", " ") + SUMS, "bob +2.25\n2 rows\n")
        typist.run("SELEC;", "SQ1001 <stdin>:2:1:")
        typist.wait("squall> ")
        typist.type(CTRL_D)
        assert typist.end() == 2 and b"\x1b" not in typist.raw


def test_what_was_typed_is_remembered(room: Path) -> None:
    history = room / "history"
    with Typist(room, SQUALL_HISTORY=str(history)) as typist:
        typist.run("SELECT\n1 AS x;", "1 row\n")
        typist.run(".quit", "")
        assert typist.end() == 0
    assert "+SELECT" in history.read_text() and history.stat().st_mode & 0o777 == 0o600
    with Typist(room, SQUALL_HISTORY=str(room / "no" / "folder")) as typist:
        typist.run("SELECT 1 AS x;", "1 row\n")


def golden_two_prompts_share_a_session(watched: Path) -> None:
    """The second is attached: it sees what the first has, as it changes, and what it asks for ends with it."""
    kept = ("--checkpoint", "kept")
    with Typist(watched, *kept) as first:
        first.run(WATCHED, "\nCREATE STREAM\n")
        first.run(COUNTS, "\nCREATE MATERIALIZED VIEW\n")
        with Typist(watched, *kept) as reader, Typist(watched, *kept, "--write") as writer:
            reader.wait("attached to the session at kept to read; --write also changes it\n")
            reader.run("SELECT * FROM counts;", "bob +1\n2 rows\n")
            reader.run("DROP MATERIALIZED VIEW counts;", "SQ7013 the statement changes the session")
            reader.run(".watch counts", r"bob +1\nbatch")
            (watched / "in" / "b.csv").write_text("user,amount,day\nbob,1.00,2024-01-04\n")
            reader.wait(r"bob +2\nbatch")
            reader.interrupt()
            writer.wait("attached to the session at kept\n")
            writer.run(SUMS, r"bob +3\.25\nbatch")
            writer.interrupt()
            reader.run(".views", "query1")
            writer.run(
                "CREATE MATERIALIZED VIEW most AS SELECT MAX(n) AS n FROM counts;", "\nCREATE MATERIALIZED VIEW\n"
            )
            writer.run(".quit", "")
            assert writer.end() == 0
            first.run("SELECT n FROM most;", r"\n2\n1 row\n")
            first.run(".quit", "counts and most go on with squall --checkpoint kept\n")
            assert first.end() == 0
            reader.wait("SQ7014 the session at kept has ended")
            assert reader.end() == 0


def test_ctrl_c_between_a_statement_and_the_prompt_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the terminal does not hand it over as a key."""
    asked = list[str]()

    class Typed:
        default_buffer = Mock(text="")

        def prompt(self, **_: object) -> str:
            asked.append("prompt")
            raise EOFError if len(asked) > 1 else Interrupted

    monkeypatch.setattr(prompt, "open_prompt", lambda _: Typed())
    monkeypatch.setattr("sys.setswitchinterval", lambda _: None)
    assert prompt.run_prompt(SessionRequest(Settings()), ResultPrinter()) == 0
    assert len(asked) == 2
