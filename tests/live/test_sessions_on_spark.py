"""Sessions on Spark, and between Spark and this process."""

from pathlib import Path
from typing import Any

import pytest

import squallpy
from squallpy.base.settings import Settings
from squallpy.live.backend import SparkBackend
from squallpy.live.live_session import LiveSession
from tests.live.test_live_session import World

pytestmark = pytest.mark.spark


def oracle_views_come_and_go_on_spark(cluster: Any) -> None:
    world = World(3, LiveSession(Settings(partitions=2), backend=SparkBackend("", cluster.session)))
    world.run(8)
    world.session.close()


def test_a_session_goes_from_here_to_spark_and_to_other_partitions(cluster: Any, tmp_path: Path) -> None:
    places: list[dict[str, Any]] = [
        {"backend": "local"},
        {"backend": "spark", "spark": cluster.session},
        {"backend": "spark", "spark": cluster.session, "settings": {"partitions": 3}},
        {"backend": "local"},
    ]
    for number, place in enumerate(places):
        with squallpy.connect(checkpoint=tmp_path / "kept", **place) as s:
            if not number:
                s.stream("r", schema={"a": "BIGINT", "b": "BIGINT"}, stored=True)
                s.sql("CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS b FROM r GROUP BY a")
            elif number == 2:
                s.sql("CREATE MATERIALIZED VIEW m AS SELECT MAX(r.b) AS most, COUNT(*) AS n FROM r JOIN v USING (a)")
            s.push("r", [{"a": n % 5, "b": n} for n in range(10)])
            s.push("r", {"a": [0], "b": [0]}, "-")
            s.run_until_caught_up()
            rows = {row["a"]: row["b"] for row in s.view("v").to_pylist()}
            assert rows == {a: (number + 1) * (2 * a + 5) for a in range(5)}
            if number >= 2:
                assert s.view("m").to_pylist()[0]["n"] == (number + 1) * 9


def fault_a_batch_that_fails_on_spark_ends_the_session(cluster: Any) -> None:
    with squallpy.connect("spark", spark=cluster.session) as s:
        s.stream("r", schema={"a": "BIGINT"})
        s.sql("SELECT SUM(a) AS a FROM r")
        s.push("r", {"a": [2**62, 2**62]})
        with pytest.raises(squallpy.SquallError, match="SQ5001"):
            s.step()
        with pytest.raises(squallpy.SquallError, match="SQ5001"):
            s.step()


TABLES = ("r", "a", "b"), ("s", "b", "c"), ("t", "c", "a")
OF_THREE = "SELECT COUNT(*) AS n FROM r, s, t WHERE r.b = s.b AND s.c = t.c AND t.a = r.a"
OF_TWO = "SELECT r.a, s.c FROM r, s WHERE r.b < s.b"


@pytest.mark.parametrize(
    ("setting", "query", "reason"),
    [
        ("join.operator=HyperCube", OF_THREE, "hypercube"),
        ("join.operator=StaticMid", OF_TWO, "grid that does not adapt"),
        ("join.operator=StaticOpt", OF_TWO, "grid that does not adapt"),
        ("join.groups=on", OF_TWO, "in groups"),
    ],
)
def test_joins_whose_state_cannot_move_are_refused_by_name(
    setting: str, query: str, reason: str, cluster: Any, tmp_path: Path
) -> None:
    def open(*settings: str) -> squallpy.Session:
        given = {"partitions": 3, **dict(each.split("=") for each in settings)}
        return squallpy.connect("spark", spark=cluster.session, checkpoint=tmp_path / "kept", settings=given)

    told, view = f"SQ7003.* {setting}.*: a session moves .*{reason}, leave it out", f"MATERIALIZED VIEW v AS {query}"
    with open(setting) as s:
        for name, *columns in TABLES:
            s.stream(name, schema=dict.fromkeys(columns, "BIGINT"))
        with pytest.raises(squallpy.SquallError, match=told):
            s.sql(f"CREATE {view}")
    with open() as s:
        s.sql(f"CREATE {view}")
        for name, *columns in TABLES:
            s.push(name, [dict.fromkeys(columns, n) for n in range(4)])
        s.run_until_caught_up()
        before = sorted(map(str, s.view("v").to_pylist()))
        name, _, value = setting.partition("=")
        with pytest.raises(squallpy.SquallError, match=told):
            s.sql(f"SET {name} = '{value}'")
        assert sorted(map(str, s.view("v").to_pylist())) == before != []
    with pytest.raises(squallpy.SquallError, match=told):
        open(setting)


def test_sessions_share_one_of_spark(cluster: Any) -> None:
    with squallpy.connect("spark", spark=cluster.session) as s, squallpy.connect("spark", spark=cluster.session) as t:
        for n, each in enumerate((s, t), 1):
            each.stream("r", schema={"a": "BIGINT"})
            each.sql("CREATE MATERIALIZED VIEW v AS SELECT SUM(a) AS a FROM r")
            each.push("r", {"a": [n]})
            each.run_until_caught_up()
        assert [each.view("v").to_pylist() for each in (s, t)] == [[{"a": 1}], [{"a": 2}]]
