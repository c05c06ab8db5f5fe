"""What is made where: deltas of the rows that travel, and on the driver the sums without keys of all partitions."""

from pathlib import Path

import pytest

from squallpy.base.settings import Settings
from squallpy.physical.explain_text import update_text
from squallpy.physical.plan import Derive, Plan, Stage, Update
from squallpy.script_session import ScriptSession

STREAMS = """
CREATE STREAM r (k INT NOT NULL, x DOUBLE NOT NULL, y DOUBLE NOT NULL, z DOUBLE NOT NULL)
    USING csv OPTIONS (path 'r.csv');
CREATE STREAM s (k INT NOT NULL, l INT NOT NULL, u DOUBLE NOT NULL) USING csv OPTIONS (path 's.csv');
"""
JOINED = "SELECT x, y, z, u FROM r JOIN s ON r.k = s.k"


def plan_of(folder: Path, query: str, **options: str) -> Plan:
    (folder / "q.sql").write_text(STREAMS + query)
    session = ScriptSession(folder / "q.sql", Settings(partition=tuple(options.items())))
    return session.compile(session.script.queries[0], 2, {"r": 100_000, "s": 100_000}).plan


def texts(stage: Stage | None) -> list[str]:
    assert stage
    return [f"Δ{s.relation.upper()}" if isinstance(s, Derive) else update_text(s) for s in stage.steps]


def golden_partitions_sum_the_root_and_the_driver_adds_up(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, f"SELECT * FROM cofactor(TABLE({JOINED}));")
    (stage,) = plan.stages
    assert [update for update in texts(stage) if "T" in update.split()[-1]] == [
        "ΔR.1 → probe V_S(k) → add to T1()",
        "ΔS.1 → probe V_R(k) → add to T2()",
    ]
    assert [send.source for send in stage.sends] == ["T1", "T2"]
    assert texts(plan.driver) == [
        "T1.1 → add to V_N1()", "T2.1 → add to V_N1()", "ΔN1", "ΔN1 → add to Q(a, b, value)",
    ]  # fmt: skip
    assert plan.driver_pools == {"V_N1"}


def golden_factors_of_a_variable_that_is_summed_away_are_in_the_sum_that_moves(tmp_path: Path) -> None:
    """Otherwise a key of each partial sum would be the variable, and as many rows move as it has values."""
    plan = plan_of(tmp_path, "SELECT * FROM cofactor(TABLE(SELECT r.k, x, y, z, u FROM r JOIN s ON r.k = s.k));")
    moved = [step for step in plan.stages[0].steps if isinstance(step, Update) and step.target.startswith("T")]
    assert [(step.keys, len(step.lanes[0] or ())) for step in moved] == 2 * [((), 1)]


def golden_a_delta_travels_as_rows_if_its_payload_is_wider(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, f"SELECT * FROM cofactor(TABLE({JOINED}));")
    assert [(send.source, send.name) for send in plan.reading.sends] == [("ΔR_ROWS", "ΔR_ROWS.1"), ("ΔS", "ΔS.1")]
    assert [len(plan.delta(name).keys) for name in ("ΔR_ROWS", "ΔR.1", "ΔS")] == [4, 1, 1]
    assert texts(plan.stages[0])[0] == "ΔR_ROWS.1 → add to ΔR.1(k)"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT AVG(x) FROM r;",  # readers sum, the driver adds up their sums anyway
        "SELECT * FROM mutual_information(TABLE(SELECT r.k, l FROM r JOIN s ON r.k = s.k));",  # pairs are keys
        f"SELECT * FROM cofactor(TABLE({JOINED.replace('SELECT', 'SELECT r.k,')}) PARTITION BY k);",  # a row a group
        "SELECT r.k, COUNT(*) FROM r JOIN s ON r.k = s.k GROUP BY r.k;",
    ],
)
def golden_views_with_keys_are_at_partitions(tmp_path: Path, query: str) -> None:
    plan = plan_of(tmp_path, query)
    assert plan.driver is None and not plan.driver_pools


def golden_what_partitions_read_stays_there(tmp_path: Path) -> None:
    """The number of all rows is a sum without keys, but rows of r are compared with it."""
    query = "SELECT r.x FROM r WHERE r.x < (SELECT AVG(a.u) FROM s a JOIN r b ON a.k = b.k);"
    assert plan_of(tmp_path, query).driver is None
