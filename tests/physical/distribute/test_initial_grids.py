"""Views on a grid: which mapping they begin with, whether it may change, and that the answers are the same."""

from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import parse_settings
from squallpy.checkpoint_identity import fingerprint
from squallpy.script_session import ScriptSession
from squallpy.testing.engines import PartitionedEngine
from squallpy.testing.step_tests import list_step_tests, run_steps

STREAMS = """
CREATE STREAM r (k BIGINT, v BIGINT) USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (k BIGINT, w BIGINT) USING csv OPTIONS (path 's.csv');
"""
EQUAL = "SELECT v, w FROM r JOIN s ON r.k = s.k;"
BAND = "SELECT v, w FROM r JOIN s ON ABS(r.k - s.k) <= 1;"
ROWS = {"r": 64_000, "s": 1_000}


def session(tmp_path: Path, query: str, operator: str, joiners: int = 16) -> ScriptSession:
    (tmp_path / "q.sql").write_text(STREAMS + query)
    for name, rows in ROWS.items():
        (tmp_path / f"{name}.csv").write_text("1,1\n" * rows)
    return ScriptSession(tmp_path / "q.sql", parse_settings([f"partitions={joiners}", f"join.operator={operator}"]))


def stages(tmp_path: Path, query: str, operator: str, joiners: int = 16) -> str:
    return session(tmp_path, query, operator, joiners).explain("stages") or ""


@pytest.mark.parametrize(
    ("query", "operator", "grid"),
    [
        (BAND, "auto", "GRID (16, 1) at first, rows by columns; M_S, M_R migrate to another when it is better"),
        (EQUAL, "Dynamic", "GRID (4, 4) at first, rows by columns; M_S, M_R migrate to another when it is better"),
        (EQUAL, "StaticOpt", "GRID (16, 1) at first, rows by columns; it stays"),
        (EQUAL, "StaticMid", "GRID (4, 4) at first, rows by columns; it stays"),
    ],
)
def golden_grids(tmp_path: Path, query: str, operator: str, grid: str) -> None:
    assert grid in stages(tmp_path, query, operator)


@pytest.mark.parametrize(("query", "operator"), [(EQUAL, "auto"), (EQUAL, "SHJ"), (BAND, "SHJ")])
def test_no_grid(tmp_path: Path, query: str, operator: str) -> None:
    assert "GRID" not in stages(tmp_path, query, operator)


def golden_as_many_joiners_as_are_a_power_of_two(tmp_path: Path) -> None:
    assert "GRID (4, 1)" in stages(tmp_path, EQUAL, "StaticOpt", joiners=7)


def golden_groups_and_growth(tmp_path: Path) -> None:
    """Of 16 and 4 joiners each has a grid; one that may grow begins on as few as will be 16 in the end."""
    path = session(tmp_path, BAND, "Dynamic", joiners=20).path
    grids = []
    for more in ("join.groups=on", "join.capacity_mb=8", "join.epsilon=0.25"):
        text = ScriptSession(path, parse_settings(["partitions=20", "join.operator=Dynamic", more])).explain("stages")
        grids.append(next(line for line in text.splitlines() if line.startswith("GRID")).split(" at first")[0])
    assert grids == ["GRID (4, 4) and (2, 2)", "GRID (1, 1)", "GRID (4, 4)"]


def test_groups_do_not_grow(tmp_path: Path) -> None:
    path = session(tmp_path, BAND, "Dynamic").path
    with pytest.raises(
        SquallError, match=r"SQ7003 join\.groups=on: groups of joiners cannot grow, only a single grid can, leave"
    ):
        ScriptSession(path, parse_settings(["join.groups=on", "join.capacity_mb=8"])).explain("stages")


def test_another_operator_is_another_plan(tmp_path: Path) -> None:
    """State on one grid is no state on another: a checkpoint is made anew."""
    plans = set()
    for operator in ("SHJ", "StaticMid", "StaticOpt", "Dynamic", "Hybrid"):
        made = session(tmp_path, EQUAL, operator)
        plans.add(fingerprint(made.compile(made.script.queries[0], 16, made.sizes), "pushed", made.sizes).plan)
    assert len(plans) == 5


def test_an_operator_that_cannot_be_is_refused(tmp_path: Path) -> None:
    nested = "SELECT v FROM r WHERE v >= ALL (SELECT w FROM s WHERE s.k = r.k);"
    with pytest.raises(SquallError) as raised:
        stages(tmp_path, nested, "Dynamic")
    assert str(raised.value) == (
        "SQ7003 join.operator=Dynamic: it does not suit this query: the groups of an auxiliary relation change "
        "in one stage and are read in another, auto chooses an operator that suits it"
    )


def test_a_sum_of_features_with_others_between_them_is_no_partial_sum(tmp_path: Path) -> None:
    """No ring is over x and z without y, by whose rows they would meet on the grid."""
    joined = "SELECT r.k, r.v AS x, s.w AS y, t.v AS z FROM r JOIN s ON r.k = s.k JOIN r AS t ON t.k = s.k"
    with pytest.raises(SquallError, match=r"SQ7003 .* a partial sum would be of features with others between them"):
        stages(tmp_path, f"SELECT * FROM cofactor(TABLE({joined}) PARTITION BY k);", "Dynamic")


def test_what_exists_is_found_on_a_grid(tmp_path: Path) -> None:
    nested = "SELECT v FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k > r.k AND s.w < s.k - r.v);"
    assert "GRID (4, 4)" in stages(tmp_path, nested, "Dynamic")


def test_so_is_one_that_has_nothing_to_hash(tmp_path: Path) -> None:
    with pytest.raises(SquallError) as raised:
        stages(tmp_path, BAND, "Hybrid")
    assert str(raised.value) == (
        "SQ7003 join.operator=Hybrid: it does not suit this query: no equality compares its streams, auto "
        "chooses an operator that suits it"
    )


AUXILIARY = (
    "nested_rows_before", "nested_total", "outer_left_true", "subquery_exists_others", "subquery_grouped",
    "subquery_one_row", "subquery_several_rows", "windows_join", "windows_band", "windows_rows",
)  # fmt: skip


@pytest.mark.parametrize("name", AUXILIARY)
def differential_nests_are_right_or_refused(name: str, tmp_path: Path) -> None:
    """Their groups stay whole, and what they are joined with is on the grid."""
    try:
        run_steps(list_step_tests()[name], PartitionedEngine(4, join_operator="Dynamic"), tmp_path)
    except SquallError as error:
        assert error.code == "SQ7003"


@pytest.mark.parametrize("operator", ["Dynamic", "StaticMid", "StaticOpt", "SHJ"])
@pytest.mark.parametrize("name", ["join_types", "range_band", "delete_first_join", "join_null_safe"])
def differential_operators(name: str, operator: str, tmp_path: Path) -> None:
    run_steps(list_step_tests()[name], PartitionedEngine(5, join_operator=operator), tmp_path)
