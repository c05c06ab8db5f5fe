"""Fixpoints whose rows partitions divide among them by columns that all rules copy, beside DuckDB."""

from dataclasses import replace
from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.compiler import CompiledQuery
from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.script_session import ScriptSession
from squallpy.testing.engines import KilledEngine, LocalEngine, MovedEngine, PartitionedEngine
from tests.marks import long
from tests.runtime.test_fixpoint_groups import QUERIES as GROUPED
from tests.runtime.test_fixpoint_groups import batches, check, script

RIGHT = f"WITH RECURSIVE r (x, y) AS ({GROUPED['right']})"
QUERIES = {
    "groups": f"{RIGHT} SELECT * FROM r",
    "several starts": f"WITH RECURSIVE r (a, b) AS ({GROUPED['three rules']}) SELECT * FROM r",
    "start on the way": f"WITH RECURSIVE r (a, b) AS ({GROUPED['two leaves']}) SELECT * FROM r",
    "joined by one of two": "WITH RECURSIVE r (a, b, c) AS (SELECT x, y, y FROM start UNION"
    " SELECT r.a, r.b, e.z FROM r JOIN edge e ON r.c = e.y) SELECT r.a, r.c, s.y AS z FROM r JOIN start s ON r.a = s.x",
    "graphs": "WITH RECURSIVE r (g, a, b) AS (SELECT x, y, z FROM edge UNION"
    " SELECT r.g, r.a, e.z FROM r JOIN edge e ON r.g = e.x AND r.b = e.y) SELECT * FROM r",
    "graphs, two rows": "WITH RECURSIVE r (g, a, b) AS (SELECT x, y, z FROM edge UNION"
    " SELECT s.g, r.a, s.b FROM r JOIN r s ON r.g = s.g AND r.b = s.a) SELECT * FROM r",
    "graphs, the same generation": "WITH RECURSIVE r (g, a, b) AS (SELECT e.x, e.z, f.z FROM edge e JOIN edge f"
    " ON e.x = f.x AND e.y = f.y UNION SELECT f.x, e.z, f.z FROM r JOIN edge e ON r.g = e.x AND r.a = e.y"
    " JOIN edge f ON f.x = r.g AND r.b = f.y) SELECT * FROM r",
    "compared": "WITH RECURSIVE r (a, b) AS (SELECT y, z FROM edge UNION"
    " SELECT r.a, e.z FROM r JOIN edge e ON r.b = e.y AND r.a <> e.z) SELECT * FROM r",
    "negation": "WITH RECURSIVE r (a, b) AS (SELECT y, z FROM edge UNION"
    " SELECT r.a, e.z FROM r JOIN edge e ON r.b = e.y"
    " WHERE NOT EXISTS (SELECT 1 FROM start s WHERE s.y = e.z)) SELECT * FROM r",
    "several columns": "WITH RECURSIVE r (a, b, c) AS (SELECT s.x, e.y, e.z FROM start s JOIN edge e ON s.y = e.y"
    " UNION SELECT r.a, r.b, e.z FROM r JOIN edge e ON r.c = e.y) SELECT a, c, COUNT(*) AS n FROM r GROUP BY a, c",
    "times": "WITH RECURSIVE r (a, b, d) AS (SELECT x, y, 1 FROM start UNION ALL"
    " SELECT r.a, e.z, r.d + 1 FROM r JOIN edge e ON r.b = e.y WHERE r.d < 4) SELECT * FROM r",
    "least": "WITH RECURSIVE r (a, b, d) AS (SELECT a, b, MIN(d) FROM (SELECT y AS a, z AS b, 1 AS d FROM edge"
    " UNION ALL SELECT r.a, e.z, r.d + 1 FROM r JOIN edge e ON r.b = e.y) q GROUP BY a, b) SELECT * FROM r",
    "mutual": "WITH RECURSIVE even (x, y) AS (SELECT o.x, e.z FROM odd o JOIN edge e ON o.y = e.y),"
    " odd (x, y) AS (SELECT y, z FROM edge UNION SELECT v.x, e.z FROM even v JOIN edge e ON v.y = e.y)"
    " SELECT o.x, o.y, v.y AS z FROM odd o JOIN even v ON o.x = v.x",
    "without it": f"{RIGHT} SELECT y, COUNT(*) AS n FROM r GROUP BY y",
    "joined by it": f"{RIGHT} SELECT r.x, r.y, s.y AS z FROM r JOIN start s ON r.x = s.x",
    "joined by another": f"{RIGHT} SELECT r.x, r.y, e.z FROM r JOIN edge e ON r.y = e.y",
    "joined with itself": f"{RIGHT} SELECT a.x, b.x AS z, COUNT(*) AS n"
    " FROM r a JOIN r b ON a.y = b.y GROUP BY a.x, b.x",
    "extreme": f"{RIGHT} SELECT x, MAX(y) AS most, COUNT(*) AS n FROM r GROUP BY x",
    "of another": f"WITH RECURSIVE r (x, y) AS ({GROUPED['right']}), q (x, y) AS (SELECT x, y FROM r"
    " UNION SELECT q.x, e.y FROM q JOIN edge e ON q.y = e.z) SELECT * FROM q",
}


def fixpoints(compiled: CompiledQuery) -> list[Fixpoint]:
    kinds = [feed.auxiliary.kind for feed in compiled.plan.feeds if feed.auxiliary]
    return [kind for kind in kinds if isinstance(kind, Fixpoint)]


class SplitEngine(PartitionedEngine):
    """A partitioned engine that insists on fixpoints that are divided."""

    def _compile(self, session: ScriptSession) -> CompiledQuery:
        compiled = super()._compile(session)
        assert compiled.plan.divisions
        return compiled


class RepinnedEngine(MovedEngine):
    """A moved engine whose partitions now and then get copies of all that is read."""

    def restart(self) -> None:
        compiler = self._session.compiler
        pins = (("F_N1", "everywhere"),) if self.moves % 2 else ()
        self._session.compiler = replace(compiler, settings=replace(compiler.settings, partition=pins))
        super().restart()


@pytest.mark.parametrize("name", QUERIES)
def test_oracle_partitions(name: str, tmp_path: Path) -> None:
    check([SplitEngine(3), LocalEngine()], QUERIES[name], batches(1, 10, 8), tmp_path)


@pytest.mark.parametrize(
    "name", ["groups", "mutual", *map(long, ("times", "least", "several columns", "several starts"))]
)
def test_oracle_with_kills(name: str, tmp_path: Path) -> None:
    check([KilledEngine(3, seed=3, kills=0.02)], QUERIES[name], batches(2, 8, 8), tmp_path)


@pytest.mark.parametrize(
    "name",
    ["groups", "mutual", "least", *map(long, ("times", "negation", "extreme", "several starts", "start on the way"))],
)
def test_oracle_on_other_partitions(name: str, tmp_path: Path) -> None:
    """Rows go to the partitions that derive them, however many there are."""
    engine = MovedEngine(3, seed=5, kills=0.02)
    check([engine], QUERIES[name], batches(3, 12, 8), tmp_path)
    assert engine.moves


@pytest.mark.parametrize("name", ["joined by one of two", *map(long, ("graphs", "several columns"))])
def test_oracle_divided_in_another_way(name: str, tmp_path: Path) -> None:
    """By other columns, and with copies of what each partition had its own rows of."""
    engine = RepinnedEngine(3, seed=5, kills=0.02)
    check([engine], QUERIES[name], batches(3, 12, 8), tmp_path)
    assert engine.moves > 2


@pytest.mark.parametrize(
    ("query", "copied"),
    [
        (QUERIES["groups"], ((0,),)),
        (QUERIES["compared"], ((0,),)),
        (QUERIES["several columns"], ((0, 1),)),
        (QUERIES["least"], ((0,),)),
        (QUERIES["mutual"], ((0,), (0,))),
        (QUERIES["graphs, two rows"], ((0,),)),
        # of one table x, of the other y
        (
            "WITH RECURSIVE p (x, y) AS (SELECT e.z, q.a FROM q JOIN edge e ON q.b = e.y),"
            " q (a, b) AS (SELECT y, z FROM edge UNION SELECT p.y, p.x FROM p) SELECT * FROM p",
            ((1,), (0,)),
        ),
        # the columns change places in one of the rules
        (
            "WITH RECURSIVE p (x, y) AS (SELECT q.b, e.z FROM q JOIN edge e ON q.a = e.y),"
            " q (a, b) AS (SELECT y, z FROM edge UNION SELECT p.x, e.z FROM p JOIN edge e ON p.y = e.y)"
            " SELECT * FROM p",
            (),
        ),
        # MIN compares rows of different values
        (
            "WITH RECURSIVE r (a, d) AS (SELECT a, MIN(d) FROM (SELECT y AS a, x AS d FROM start"
            " UNION ALL SELECT e.z, r.d FROM r JOIN edge e ON r.a = e.y) q GROUP BY a) SELECT * FROM r",
            (),
        ),
        # a rule reads two rows
        (
            "WITH RECURSIVE r (a, b) AS (SELECT y, z FROM edge UNION SELECT r.a, s.b FROM r JOIN r s ON r.b = s.a)"
            " SELECT * FROM r",
            (),
        ),
        # the same generation
        (
            "WITH RECURSIVE r (a, b) AS (SELECT e.z, f.z FROM edge e JOIN edge f ON e.y = f.y UNION"
            " SELECT e.z, f.z FROM r JOIN edge e ON r.a = e.y JOIN edge f ON r.b = f.y) SELECT * FROM r",
            (),
        ),
    ],
)
def test_copied_columns(query: str, copied: tuple[tuple[int, ...], ...], tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    path.write_text(script(query))
    session = ScriptSession(path)
    compiled = session.compile(session.script.queries, 3, {})
    assert [kind.copied_columns for kind in fixpoints(compiled)] == [copied]
    assert bool(compiled.plan.divisions) == bool(copied)


def test_an_endless_recursion_ends_on_all_partitions(tmp_path: Path) -> None:
    query = "WITH RECURSIVE r (a, d) AS (SELECT x, 1 FROM start UNION SELECT a, d + 1 FROM r) SELECT * FROM r"
    (engine := SplitEngine(3, iterations=50)).start(script(query), tmp_path, {})
    with pytest.raises(SquallError, match='"r" still changes after 50 iterations'):
        engine.push(batches(1, 1, 8)[0])


def test_explain_tells_how_rows_are_divided_or_why_not(tmp_path: Path) -> None:
    def lines(query: str) -> list[str]:
        path = tmp_path / "q.sql"
        path.write_text(script(query))
        return [line for line in ScriptSession(path).explain("why").splitlines() if line.startswith("FIXPOINT")]

    def assert_division(name: str, how: str) -> None:
        assert lines(QUERIES[name]) == [f"FIXPOINT N1 by {how}"]

    # by the column that START and EDGE are joined by, so that this join takes no exchange
    assert_division("several columns", "b, which all rules copy: START⋈EDGE likewise, EDGE at every partition")
    assert_division("groups", "x, which all rules copy: START likewise, EDGE at every partition")
    assert_division("start on the way", "a, which all rules copy: START, EDGE at every partition")
    assert_division("joined by one of two", "a, which all rules copy: START likewise, EDGE at every partition")
    assert_division("graphs", "g, which all rules copy: EDGE likewise")
    assert_division("graphs, two rows", "g, which all rules copy: EDGE likewise")
    assert_division("graphs, the same generation", "g, which all rules copy: EDGE⋈EDGE, EDGE likewise")
    assert_division("mutual", "x, which all rules copy: EDGE at every partition")
    twice = "WITH RECURSIVE r (a, b) AS (SELECT y, z FROM edge UNION SELECT r.a, s.b FROM r JOIN r s ON r.b = s.a)"
    assert lines(f"{twice} SELECT * FROM r") == ["FIXPOINT N1 in one partition: a rule joins any two of its rows"]


def test_rows_that_only_begin_a_recursion_are_sent_to_one_partition(tmp_path: Path) -> None:
    path = tmp_path / "q.sql"
    path.write_text(script(QUERIES["groups"]))
    sends = [line.strip() for line in ScriptSession(path).explain("physical").splitlines() if "SEND" in line]
    assert sends == ["SEND T1(leaf, x, y, z) by x as T1.1", "SEND T2(leaf, x, y, z) to every partition as T2.1"]


@pytest.mark.parametrize("name", ["groups", "several columns"])
def test_oracle_with_pinned_copies(name: str, tmp_path: Path) -> None:
    """Partitions with copies of all leaves divide the rows all the same."""
    engine = SplitEngine(3)
    engine._settings = Settings(compile="off", partition=(("F_N1", "everywhere"),))
    check([engine], QUERIES[name], batches(6, 6, 8), tmp_path)


@pytest.mark.parametrize("partitions", [2, 8, 64])
@pytest.mark.parametrize("name", QUERIES)
def test_placements_hardly_depend_on_how_many_rows_follow_from_one(
    name: str, partitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is assumed is a guess, which does not decide where rows are derived."""
    path, found = tmp_path / "q.sql", list[tuple[object, object]]()
    path.write_text(script(QUERIES[name]))
    for many in (2.0, 10.0, 1000.0):
        monkeypatch.setattr(Fixpoint, "fan_out", many)
        session = ScriptSession(path, Settings(partitions=partitions))
        plan = session.compile(session.script.queries, partitions, {}).plan
        found.append((plan.places, plan.divisions))
    assert all(each == found[0] for each in found), found
