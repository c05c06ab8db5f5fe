"""Rows that declarations say relations have, by which views keep rows where nobody can count them."""

from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.checkpoint_identity import fingerprint
from squallpy.script_session import ScriptSession

SCRIPT = """
CREATE STREAM fact (k INT, j INT, x DOUBLE, y DOUBLE, z DOUBLE) USING json OPTIONS (path 'f', watch 'true'{fact});
CREATE STREAM dim (k INT, u DOUBLE) USING json OPTIONS (path 'd', watch 'true'{dim});
CREATE {kind} other (j INT, v DOUBLE) USING csv OPTIONS (path 'other.csv'{other});
SELECT * FROM cofactor(TABLE(SELECT x, y, z, u, v FROM fact NATURAL JOIN dim NATURAL JOIN other));
"""
MANY, FEW = ", expected_rows '60000'", ", expected_rows '500'"


def session(folder: Path, fact: str = "", dim: str = "", other: str = "", kind: str = "STREAM") -> ScriptSession:
    (folder / "other.csv").write_text("".join(f"{j},{j}.5\n" for j in range(400)))
    return ScriptSession(folder / "s.sql", text=SCRIPT.format(fact=fact, dim=dim, other=other, kind=kind))


@pytest.mark.parametrize(
    ("options", "rows", "virtual"),
    [
        ({"fact": MANY, "dim": FEW, "other": FEW}, 1, 1),
        ({"fact": MANY, "dim": FEW, "kind": "TABLE"}, 1, 1),  # whose rows are counted
        ({"fact": MANY, "dim": FEW}, 0, 0),  # nobody knows how many rows the last has
        ({"fact": FEW, "dim": FEW, "other": FEW}, 1, 1),
        ({"fact": MANY, "dim": FEW, "other": ", expected_rows '3'"}, 0, 1),  # many rows a key
        ({"fact": MANY, "dim": FEW + ", op 'o'", "other": FEW}, 1, 0),
        ({"fact": MANY, "dim": FEW, "other": FEW + ", op 'o'"}, 1, 1),
    ],
)
def test_views_keep_rows_by_what_is_expected(
    options: dict[str, str], rows: int, virtual: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = session(tmp_path, **options).explain("viewtree")
    assert (found.count("kept as rows"), found.count("virtual")) == (rows, virtual)


def test_a_checkpoint_is_of_the_query_and_not_of_what_is_expected(tmp_path: Path) -> None:
    plans = []
    for rows in (FEW, ", expected_rows '3'"):
        made = session(tmp_path, MANY, FEW, rows)
        plans.append(fingerprint(made.compile(made.script.queries, 1, {}), "", {}))
    assert plans[0].query == plans[1].query and plans[0].plan != plans[1].plan


@pytest.mark.parametrize("rows", ["0", "-1", "many", ""])
def test_expected_rows_are_a_number(rows: str, tmp_path: Path) -> None:
    with pytest.raises(SquallError, match="expected_rows"):
        _ = session(tmp_path, f", expected_rows '{rows}'").script
