"""`explain viewtree` shows the payloads that plans have: words of sums of one double or two, counts of pairs."""

from pathlib import Path

import pytest

from squallpy.base.settings import parse_settings
from squallpy.script_session import ScriptSession

STREAMS = """
CREATE STREAM r (k INT, x DOUBLE) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (k INT, y DOUBLE) USING csv OPTIONS (path 's.csv');
"""
JOIN = "FROM r NATURAL JOIN s"


def session(folder: Path, query: str, *settings: str) -> ScriptSession:
    script = folder / "q.sql"
    script.write_text(f"{STREAMS}{query};\n")
    return ScriptSession(script, parse_settings(settings))


@pytest.mark.parametrize("sums", ["compensated", "plain"])
@pytest.mark.parametrize("degree", [1, 2])
def test_words_are_those_of_the_plan(sums: str, degree: int, tmp_path: Path) -> None:
    query = f"SELECT * FROM cofactor(TABLE(SELECT x, y {JOIN}), degree => {degree})"
    made = session(tmp_path, query, f"fivm.sums={sums}")
    plan = made.compile(made.script.queries, 1, {}).plan
    widest = max(pool.payload.width for pool in plan.pools)
    assert f"⟩ {widest} words" in made.explain("viewtree")


def test_pairs_are_counted(tmp_path: Path) -> None:
    pairs = "TABLE(SELECT r.k, CAST(x AS INT) AS x, CAST(y AS INT) AS y FROM r JOIN s ON r.k = s.k)"
    text = session(tmp_path, f"SELECT * FROM chow_liu({pairs})").explain("viewtree")
    titles = [line for line in text.splitlines() if line.startswith("VIEW TREE")]
    assert titles == ["VIEW TREE of k and x", "VIEW TREE of k and y", "VIEW TREE of x and y"]
    assert "COFACTOR" not in text and "⟨COUNT⟩ 1 word" in text
