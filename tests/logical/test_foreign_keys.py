"""Foreign keys: what they name has to be there; they say how many values a key has."""

from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.physical.distribute.placement_search import _key_values
from squallpy.program.view_facts import foreign_keys
from squallpy.script_session import ScriptSession

SIZES = {"items": 6_000, "orders": 1_500, "parts": 200}
ORDERS = "CREATE STREAM orders (o INT PRIMARY KEY, p INT) USING csv OPTIONS (path 'o.csv');"
QUERY = "SELECT o, COUNT(*) AS n FROM items GROUP BY o;"


def items(constraint: str, more: str = "") -> str:
    return (
        f"CREATE STREAM items (o INT {constraint}, n INT, PRIMARY KEY (o, n){more}) USING csv OPTIONS (path 'i.csv');"
    )


def session_of(room: Path, *script: str) -> ScriptSession:
    (room / "q.sql").write_text("\n".join(script))
    return ScriptSession(room / "q.sql")


@pytest.mark.parametrize(
    "declared",
    [
        (ORDERS, items("REFERENCES orders")),
        (items("REFERENCES Orders (O)"), ORDERS),  # also of what is declared later
        (ORDERS, items("", ", FOREIGN KEY (O) REFERENCES orders (o)")),
    ],
)
def test_a_foreign_key_has_no_more_values_than_what_it_refers_to(tmp_path: Path, declared: tuple[str, str]) -> None:
    session = session_of(tmp_path, *declared, QUERY)
    program = session.compile(session.script.queries[0], 1, {}).program
    assert _key_values(program, SIZES) == {("items", "o"): 1_500, ("items", "n"): 6_000}
    assert ("items", "o") in foreign_keys(program)


def test_a_relation_of_unknown_size_says_nothing(tmp_path: Path) -> None:
    session = session_of(tmp_path, ORDERS, items("REFERENCES orders"), QUERY)
    program = session.compile(session.script.queries[0], 1, {}).program
    assert _key_values(program, {"items": 6_000, "orders": 0})["items", "o"] == 6_000


@pytest.mark.parametrize(
    ("constraint", "line"),
    [
        ("REFERENCES order", 'SQ2001 q.sql:2:28: unknown table "order", did you mean "orders"?'),
        ("REFERENCES orders (oo)", 'SQ2003 q.sql:2:28: "orders" has no column "oo", did you mean "o"?'),
        (
            "REFERENCES orders (o, p)",
            "SQ2007 q.sql:2:28: a foreign key of 1, but it names 2, write REFERENCES orders (…) with as many columns",
        ),
        (
            "REFERENCES items",
            "SQ2007 q.sql:2:28: a foreign key of 1, but the primary key of items has 2, write REFERENCES items (…) "
            "with as many columns",
        ),
    ],
)
def golden_references_that_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, constraint: str, line: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.sql").write_text(f"{ORDERS}\n{items(constraint)}\n{QUERY}")
    with pytest.raises(SquallError) as raised:
        _ = ScriptSession((tmp_path / "q.sql").relative_to(tmp_path)).script
    assert str(raised.value) == line
