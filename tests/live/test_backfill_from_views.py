"""Views that are filled from the records of other views, while batches change these."""

from contextlib import AbstractContextManager
from random import Random
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from squallpy.live import backfill_from_views
from squallpy.live.fair_lock import Hold
from squallpy.live.live_program import LiveProgram, Pending
from squallpy.live.live_session import LiveSession
from squallpy.runtime.kernels import dictionary
from squallpy.runtime.local_executor import LocalExecutor
from squallpy.runtime.state import mirrors
from squallpy.runtime.state.state_store import Store
from squallpy.testing.compare_rows import difference

STREAMS = """
CREATE STREAM r (k INT, t VARCHAR, d DECIMAL(38,0), x DOUBLE, v INT) USING pushed OPTIONS (op 'op') STORED;
CREATE STREAM s (k INT, w INT) USING pushed OPTIONS (op 'op') STORED;
"""
FIRST = """
CREATE MATERIALIZED VIEW a AS SELECT k, t, d, SUM(v) AS s, SUM(x) AS f, COUNT(*) AS n FROM r GROUP BY k, t, d;
CREATE MATERIALIZED VIEW b AS SELECT t, COUNT(*) AS n FROM r GROUP BY t HAVING COUNT(*) > 1;
CREATE MATERIALIZED VIEW c AS SELECT k, t, SUM(v) AS s FROM r GROUP BY k, t;
CREATE MATERIALIZED VIEW e AS SELECT k, SUM(w) AS w FROM s GROUP BY k;
CREATE MATERIALIZED VIEW least AS SELECT t, MIN(s) AS least FROM c GROUP BY t;
CREATE MATERIALIZED VIEW some AS SELECT k, t, x, v, v * 2 AS w FROM r WHERE v > -3;
CREATE MATERIALIZED VIEW pairs AS SELECT r.k, r.t, r.v, s.w FROM r JOIN s ON r.k = s.k AND r.v = s.w WHERE v > 2;
"""
ADDED = {
    "one": "SELECT COUNT(*) AS n, SUM(s) AS s, SUM(f) AS f FROM a",
    "texts": "SELECT t || '!' AS t, COUNT(*) AS n, MAX(s) AS most FROM a WHERE s > 0 GROUP BY t || '!'",
    "above": "SELECT COUNT(*) AS n, SUM(n) AS total FROM b WHERE n % 2 = 1",
    "joined": "SELECT c.t, SUM(c.s * e.w) AS s FROM c JOIN e USING (k) GROUP BY c.t",
    "ratio": "SELECT t, s, s * 100 / (SELECT SUM(n) FROM a) AS part FROM c",
    "ranked": "SELECT d, f, RANK() OVER (PARTITION BY t ORDER BY s DESC, k) AS place FROM a",
    "sums": "SELECT t, COUNT(*) AS n, SUM(w) AS w, SUM(x) AS x FROM some WHERE k < 7 GROUP BY t",
    "extremes": "SELECT t, MAX(w) AS most, COUNT(DISTINCT k) AS n FROM some GROUP BY t",
    "matched": "SELECT p.t, COUNT(*) AS n FROM some p JOIN some q ON p.k = q.k AND p.v + 6 < q.v GROUP BY p.t",
    "rolled": "SELECT t, w, COUNT(*) AS n, SUM(v) AS v FROM pairs GROUP BY t, w",
    "both": "SELECT some.t, COUNT(*) AS n FROM some JOIN pairs ON some.v = pairs.v GROUP BY some.t",
}
FROM_STREAMS = ("joined", "ranked")
Row = dict[str, Any]


class World:
    """A session whose batches insert and delete random rows, and all that it was given."""

    def __init__(self, seed: int) -> None:
        self.session, self.draw = LiveSession(), Random(seed)
        self.rows: dict[str, list[Row]] = {"r": [], "s": []}
        self.given, self.steps, self.texts = list[tuple[str, list[Row], str]](), 0, 5
        [*self.session.execute(STREAMS + FIRST)]

    def step(self, changes: int = 9) -> None:
        """Apply a batch of inserts, and of deletes of rows that are there."""
        self.steps += 1
        for name, rows in self.rows.items():
            gone = [rows.pop(self.draw.randrange(len(rows))) for _ in range(self.draw.randrange(changes)) if rows]
            new = [self._row(name) for _ in range(self.draw.randrange(changes + 2))]
            rows += new
            for some, op in ((new, "+"), (gone, "-")):
                if some:
                    self.session.push(name, some, op)
                    self.given.append((name, some, op))
        self.session.step()

    def _row(self, name: str) -> Row:
        key = self.draw.randrange(9)
        if name == "s":
            return {"k": key, "w": self.draw.randrange(5)}
        text = self.draw.choice((None, "", f"é{key}", f"t{self.draw.randrange(self.texts)}"))
        digits = self.draw.choice((None, 7, 10**30 + self.draw.randrange(2)))
        return {"k": key, "t": text, "d": digits, "x": self.draw.random() * 1e9, "v": self.draw.randrange(-4, 9)}

    def check(self, views: dict[str, str]) -> None:
        """Compare each view with that of a session that had all views from the beginning."""
        other = LiveSession()
        [*other.execute(STREAMS + FIRST + "".join(creating(name, query) + ";" for name, query in views.items()))]
        for name, rows, op in self.given:
            other.push(name, rows, op)
        other.run_until_caught_up()
        for name in ("a", "b", "c", "e", "least", "some", "pairs", *views):
            assert not (found := difference(self.session.table(name), other.table(name))), f"{name}: {found}"


def creating(name: str, query: str) -> str:
    return f"CREATE MATERIALIZED VIEW {name} AS {query}"


def copy_so_many(monkeypatch: pytest.MonkeyPatch, records: int) -> None:
    """Let so many records be copied at once."""
    for module in (backfill_from_views, mirrors):
        monkeypatch.setattr(module, "PIECE", records)


def property_views_are_filled_while_batches_change_what_they_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while strings get other numbers; what is dropped leaves the others as they are."""
    world, begin, views = World(1), LiveProgram.begin_backfill, dict[str, str]()
    monkeypatch.setattr(dictionary, "_FEW", 0)
    copy_so_many(monkeypatch, 16)
    for _ in range(5):
        world.step(25)

    def hold_behind_a_batch(hold: Hold) -> AbstractContextManager[Any]:
        world.step()
        return hold()

    def slow(program: LiveProgram, pending: Pending, hold: Hold) -> None:
        begin(program, pending, lambda: hold_behind_a_batch(hold))

    monkeypatch.setattr(LiveProgram, "begin_backfill", slow)
    for name in world.draw.sample(list(ADDED), len(ADDED)):
        steps, views[name] = world.steps, ADDED[name]
        [*world.session.execute(creating(name, ADDED[name]))]
        assert world.steps > steps or name in FROM_STREAMS, f"{name} is filled from views, beside batches"
    world.check(views)
    for name in world.draw.sample(list(ADDED), 3):
        del views[name]
        world.step()
        [*world.session.execute(f"DROP VIEW {name}")]
    world.check(views)


def test_a_part_of_the_records_may_say_what_all_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of the first four is no INT, that of all is one."""
    copy_so_many(monkeypatch, 4)
    session = LiveSession()
    [*session.execute(STREAMS + creating("e", "SELECT k, SUM(w) AS w FROM s GROUP BY k"))]
    session.push("s", [{"k": key, "w": w} for key, w in enumerate((10**9, 10**9, 10**9, 10, -(2 * 10**9)))])
    session.step()
    [*session.execute(creating("total", "SELECT k, CAST((SELECT SUM(w) FROM e) AS INT) AS total FROM e WHERE w < 0"))]
    assert session.table("total").to_pydict() == {"k": [4], "total": [1000000010]}
    session.push("s", [{"k": 5, "w": 2 * 10**9}])
    with pytest.raises(SquallError, match="SQ5"):
        session.step()


def test_no_record_moves_when_a_view_is_dropped() -> None:
    """The pools of the others are kept as they are; so they are under a view that is added."""
    world = World(7)
    world.step(40)
    [*world.session.execute(creating("one", ADDED["one"]))]
    before = {id(pool): len(pool) for pool in stores(world.session).values()}
    [*world.session.execute("DROP VIEW one")]
    assert {id(pool) for pool in stores(world.session).values() if len(pool) > 1} <= before.keys()
    world.check({})


def stores(session: LiveSession) -> Store:
    """Return the state of a session."""
    assert session.program.running and isinstance(session.program.running.executor, LocalExecutor)
    return session.program.running.executor.store
