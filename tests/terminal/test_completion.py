"""What may follow a text that is typed, and the colours of its words."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from squallpy.live.live_session import LiveSession
from squallpy.terminal.completion import complete
from squallpy.terminal.sql_words import words

STREAMS = """
CREATE STREAM orders (oid BIGINT, total DECIMAL(10,2)) USING pushed;
CREATE STREAM items (oid BIGINT, price DOUBLE) USING pushed;
CREATE MATERIALIZED VIEW revenue AS SELECT oid, SUM(price) AS total_price FROM items GROUP BY oid;
CREATE MATRIX m (2, 2) FROM STREAM items (oid, oid, price);
CREATE FUNCTION tax_of(price DOUBLE) RETURNS DOUBLE RETURN price * 0.19;
"""


@pytest.fixture(scope="module")
def session() -> Iterator[LiveSession]:
    session = LiveSession()
    [*session.execute(STREAMS)]
    yield session
    session.close()


def completed(text: str, session: LiveSession | None) -> tuple[str, list[str]]:
    word, found = complete(text, session)
    return word, [each.text for each in found]


@pytest.mark.parametrize(
    ("text", "word", "wanted"),
    [
        ("SELECT * FROM or", "or", ["orders", "or", "order"]),
        ("SELECT tot", "tot", ["total", "total_price"]),
        ("SELECT * FROM orders WHERE tot", "tot", ["total"]),
        ("SELECT o.t", "o.t", []),
        ("SELECT * FROM orders AS o JOIN items i ON o.t", "o.t", ["o.total"]),
        ("SELECT * FROM orders AS o JOIN items i ON i.", "i.", ["i.oid", "i.price"]),
        ("SELECT revenue.total", "revenue.total", ["revenue.total_price"]),
        ("SELECT REGR_SL", "REGR_SL", ["REGR_SLOPE("]),
        ("SHOW str", "str", ["STREAMS"]),
        ("SHOW fu", "fu", ["FUNCTIONS"]),
        ("SELECT tax_o", "tax_o", ["tax_of("]),
        ("SELECT * FROM tax_o", "tax_o", []),
        ("SET batch", "batch", ["batch_rows"]),
        ("CREATE STREAM r (a INT) USING par", "par", ["parquet"]),
        ("CREATE STREAM r (a INT) USING csv OPTIONS (wa", "wa", ["watch"]),
        ("CREATE STREAM r (a INT) USING csv OPTIONS (path 'x', head", "head", ["header"]),
        ("SELECT 1; DESCRIBE rev", "rev", ["revenue"]),
        ("SELECT * FROM orders, it", "it", ["items"]),
        ("sel", "sel", ["select"]),
        (".mo", ".mo", [".mode"]),
        ("\\tim", "\\tim", ["\\timing"]),
        (".mode j", "j", ["json"]),
        (".plan rev", "rev", ["revenue"]),
    ],
)  # fmt: skip
def golden_completions(session: LiveSession, text: str, word: str, wanted: list[str]) -> None:
    assert completed(text, session) == (word, wanted)


def test_completions_before_the_session_has_begun() -> None:
    assert completed("SELECT * FROM se", None) == ("se", ["select", "semi", "set"])
    assert completed("SELECT * FROM orders o WHERE o.", None) == ("o.", [])


def test_paths_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queries").mkdir()
    (tmp_path / "query.sql").touch()
    assert completed(".read que", None) == ("que", ["queries/", "query.sql"])


def golden_words() -> None:
    assert list(words("SELECT 'a', 1 -- c\nFROM \"x\"")) == [
        ("keyword", "SELECT"), ("", " "), ("string", "'a'"), ("", ", "), ("number", "1"), ("", " "),
        ("comment", "-- c"), ("", "\n"), ("keyword", "FROM"), ("", " "), ("", '"x"'),
    ]  # fmt: skip
    assert list(words(" .mode csv")) == [("", " "), ("command", ".mode"), ("", " csv")]
    for text in ("'open", "/* open", "`", "a-b/c", "", "é1_"):
        assert "".join(part for _, part in words(text)) == text
