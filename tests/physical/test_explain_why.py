"""`explain why`: passes with their reasons, what views are held for, and what other placements would cost."""

import re
from pathlib import Path

import pytest

from squallpy.base.settings import parse_settings
from squallpy.live.live_session import LiveSession
from squallpy.script_session import ScriptSession

STREAMS = """
CREATE STREAM r (a INT, b INT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (b INT, c INT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM t (c INT, d INT) USING csv OPTIONS (path 't.csv');
"""
CHAIN = (
    "SELECT r.a, COUNT(*) AS n, MAX(t.d) AS m FROM r, s, t WHERE r.b < s.b AND s.c < t.c AND r.a = 1 + 2 GROUP BY r.a;"
)


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "r.csv").write_text("1,2\n" * 5000)
    (tmp_path / "t.csv").write_text("1,2\n" * 8000)
    return tmp_path


def explain(room: Path, query: str, partitions: int, stage: str = "why") -> str:
    settings = parse_settings((f"partitions={partitions}",))
    return ScriptSession(room / "q.sql", settings, f"{STREAMS}{query}").explain(stage)


def test_each_pass_is_told_with_its_reason(room: Path) -> None:
    text = explain(room, CHAIN, 1)
    assert "  normalise_expressions by fold_constant: first, so that later passes see the conjuncts" in text
    assert "  M_R(a, b): when s, t change\n" in text
    assert "PLACEMENTS" not in text
    assert explain(room, "SELECT a FROM r;", 1).splitlines() == ["PASSES that changed it"]


def test_placements_are_told_with_their_costs(room: Path) -> None:
    text = explain(room, CHAIN, 8)
    found = re.findall(r"^ +([\d,]+|impossible)  (.*)$", text, re.MULTILINE)
    costs = [float("inf") if cost == "impossible" else float(cost.replace(",", "")) for cost, _ in found]
    assert costs == sorted(costs) and found[0][1] == "the same, on a hypercube"
    assert {"in one partition", "on a grid", "by the primary key with the most values"} <= {name for _, name in found}
    assert "\nHYPERCUBE r 2 by ticket × s 2 by ticket × t 2 by ticket at first" in text


def test_ranges_of_a_band_are_told_with_their_cost(room: Path) -> None:
    """Less than on the grid, whose rows and columns are copied; only where a band is compared."""
    text = explain(room, "SELECT COUNT(*) AS n, SUM(a) AS a FROM r JOIN s ON ABS(r.b - s.b) <= 3 AND a <> c;", 8)
    costs = {name: float(cost.replace(",", "")) for cost, name in re.findall(r"^ +([\d,]+)  (.*)$", text, re.MULTILINE)}
    ranges = "on ranges of what the band compares, if its values are even"
    assert costs[ranges] < costs["on a grid"] and "\nRANGES of " in text
    assert ranges not in explain(room, "SELECT COUNT(*) AS n FROM r JOIN s ON r.b < s.b;", 8)


def test_an_equality_needs_no_hypercube(room: Path) -> None:
    query = "SELECT r.a, SUM(t.d) AS d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c GROUP BY r.a;"
    text = explain(room, query, 4)
    assert "hypercube" not in text and "all by r.b\n" in text and "JOIN " in text


@pytest.mark.parametrize("stage", ["physical", "stages", "why"])
def test_plans_beside_a_hypercube_are_shown(room: Path, stage: str) -> None:
    """Views that are hashed by a key, as that of groups under MAX is."""
    assert "an equality: beside a hypercube no keys have grids" in explain(room, CHAIN, 8, stage)


def test_a_session_tells_it_of_a_view(room: Path) -> None:
    session = LiveSession(base=room)
    texts = (f"{STREAMS}CREATE MATERIALIZED VIEW v AS {CHAIN}", "EXPLAIN WHY v;", "explain why select a from r")
    *_, of_view, of_query = [outcome for text in texts for outcome in session.execute(text)]
    assert of_view.text and "M_R(a, b): when s, t change" in of_view.text
    assert of_query.text == "PASSES that changed it\n"
    session.close()
