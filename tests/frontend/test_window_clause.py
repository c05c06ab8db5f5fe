"""Windows of blocks: where one begins, and what it says."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.catalog.window_spec import UNBOUNDED, Clock, SessionExtent, WindowExtent, WindowSpec
from squallpy.frontend.dialect import Squall
from squallpy.frontend.source_text import ScriptText
from squallpy.frontend.window_clause import WINDOW, read_window, with_windows

SEC = 1_000_000


def found(sql: str) -> list[str]:
    """The texts of the windows of a query."""
    return [token.text for token in with_windows(Squall().tokenize(sql), sql) if token.token_type is WINDOW]


def test_a_window_is_behind_what_a_block_reads() -> None:
    assert found("SELECT a FROM s RANGE 5 MIN SLIDE '1' MIN") == ["RANGE 5 MIN SLIDE '1' MIN"]
    assert found("SELECT a FROM s t tumble 20 SEC ORDER BY a DESC LIMIT 3") == ["tumble 20 SEC"]
    assert found("SELECT a FROM s ORDER BY a DESC ROWS 5 SLIDE 2 LIMIT 3") == ["ROWS 5 SLIDE 2"]
    assert found("SELECT a FROM s LIMIT 3 ROWS 5 TUMBLE") == ["ROWS 5 TUMBLE"]
    assert found("SELECT a FROM s WHERE a IN (SELECT b FROM t ROWS 5) LANDMARK") == ["ROWS 5", "LANDMARK"]
    assert found("SELECT a FROM s RANGE 5 SEC UNION (SELECT b FROM t LANDMARK SINCE '2026-01-01')") == [
        "RANGE 5 SEC", "LANDMARK SINCE '2026-01-01'",
    ]  # fmt: skip
    assert found("(SELECT a FROM s) RANGE 5 DAYS") == ["RANGE 5 DAYS"]  # where it is refused by name
    assert found("SELECT a FROM s WHERE a > date RANGE 5 DAYS") == ["RANGE 5 DAYS"]
    assert found("SELECT a FROM s WHERE a IS NOT NULL RANGE -5 DAYS") == ["RANGE -5 DAYS"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT range, rows - 5, tumble, landmark FROM landmark",
        "SELECT range - 5 AS rows FROM s WHERE rows > range - 5 AND tumble BETWEEN tumble - 1 AND rows + 2",
        "SELECT a FROM s AS landmark",
        "SELECT a FROM s GROUP BY landmark",
        "SELECT a FROM s, landmark WHERE NOT landmark",
        "SELECT a FROM s AS rows JOIN t AS range ON rows.a = range.a",
        "SELECT SUM(a) OVER (ORDER BY b ROWS 5 PRECEDING) FROM s",
        "SELECT SUM(a) OVER (PARTITION BY c ORDER BY b RANGE BETWEEN 5 PRECEDING AND CURRENT ROW) FROM s",
        "SELECT a FROM s WHERE b = 'x RANGE 5 MIN' -- ROWS 5",
        "SELECT `rows` FROM s OFFSET 5 ROWS",
    ],
)
def test_its_words_are_no_keywords(sql: str) -> None:
    assert found(sql) == []


def test_sizes_and_slides() -> None:
    def frame(text: str) -> WindowExtent | SessionExtent | None:
        return read_window(ScriptText(text, "q.sql"), 0, len(text)).frame

    assert frame("range 5 min") == WindowExtent(300 * SEC)
    assert frame("RANGE '90' SECONDS SLIDE 1 -- a comment\n MIN") == WindowExtent(90 * SEC, 60 * SEC)
    assert frame("TUMBLE 1 DAY") == WindowExtent(86_400 * SEC, 86_400 * SEC, tumbling=True)
    assert frame("SESSION 5 MIN") == SessionExtent(300 * SEC)
    assert frame("ROWS 10") == WindowExtent(10, rows=True)
    assert frame("ROWS 10 SLIDE 10") == WindowExtent(10, 10, rows=True)
    assert frame("ROWS 10 TUMBLE") == WindowExtent(10, 10, tumbling=True, rows=True)
    assert frame("LANDMARK") is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("RANGE 5", "SQ1001 q.sql:1:7: the window ends too early, expected a unit like SEC, MIN or HOUR"),
        ("RANGE 5 MIN SLIDE", "SQ1001 q.sql:1:17: the window ends too early, expected a number or a string"),
        ("RANGE 5 MIN 3", 'SQ1001 q.sql:1:13: unexpected "3" in a window, expected SLIDE or no more'),
        ("RANGE 5 MINX", 'SQ1001 q.sql:1:9: unknown unit "MINX", did you mean "MIN"?'),
        ("RANGE 0 MIN", "SQ2010 q.sql:1:7: a window of 0 is empty, write more than 0"),
        ("RANGE '-1' MIN", "SQ2010 q.sql:1:7: a window of -1 is empty, write more than 0"),
        ("RANGE 'x' MIN", "SQ1001 q.sql:1:7: 'x' is not a whole number"),
        ("RANGE 99999999999999 DAYS", "SQ2010 q.sql:1:7: a window longer than the supported time, write LANDMARK"),
        ("ROWS 5 SLIDE 0", "SQ2010 q.sql:1:14: a window of 0 is empty, write more than 0"),
        ("ROWS 5 SLIDE 6", "SQ2010 q.sql:1:14: SLIDE is longer than the window, rows would be in none: write TUMBLE"),
        ("LANDMARK SINCE 5", 'SQ1001 q.sql:1:16: unexpected "5" in a window, expected TIMESTAMP or a string'),
    ],
)
def test_what_is_wrong_is_said_in_one_line(text: str, error: str) -> None:
    with pytest.raises(SquallError) as raised:
        read_window(ScriptText(text, "q.sql"), 0, len(text))
    assert str(raised.value) == error


def test_the_bound_follows_the_slowest_clock() -> None:
    clocks = (Clock("r", "ts", delay=2), Clock("s", "day", unit=10))
    window = WindowSpec("r", WindowExtent(5), "ts", 1, clocks)
    assert window.lower_bound({"r.ts": 20}) == UNBOUNDED
    assert [window.lower_bound({"r.ts": r, "s.day": s}) for r, s in ((20, 1), (20, 3), (-1, 3))] == [5, 13, -8]
    assert WindowSpec("s", WindowExtent(5), "day", 10, clocks).lower_bound({"r.ts": 20, "s.day": 3}) == 1
    assert [WindowExtent(10, 5).lower_bound(t) for t in (9, 10, -1)] == [-5, 0, -15]
    assert [WindowExtent(10, 10, tumbling=True).lower_bound(t) for t in (9, 10, -1)] == [-1, 9, -11]
