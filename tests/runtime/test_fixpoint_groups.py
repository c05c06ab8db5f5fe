"""Fixpoints with stable columns, kept in groups, beside the same query kept in pools, and beside DuckDB."""

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from squallpy.program.auxiliary.fixpoint import Fixpoint
from squallpy.runtime.auxiliary.fixpoint_groups import GroupedFixpointMaintainer
from squallpy.script_session import ScriptSession
from squallpy.testing.compare_rows import difference, rows_of
from squallpy.testing.engines import KilledEngine, LocalEngine, MemoryEngine, PartitionedEngine, VolatileEngine
from squallpy.testing.oracle import MULT, Oracle
from tests.marks import long

STREAMS = """
CREATE STREAM edge (x INT, y VARCHAR, z VARCHAR) USING csv OPTIONS (path 'edge', op 'op');
CREATE STREAM start (x INT, y VARCHAR) USING csv OPTIONS (path 'start', op 'op');
"""
QUERIES = {
    "right": "SELECT x, y FROM start UNION SELECT r.x, e.z FROM r JOIN edge e ON r.y = e.y",
    "left": "SELECT y, z FROM edge UNION SELECT e.y, r.b FROM r JOIN edge e ON r.a = e.z",
    "depth": "SELECT x, y, 1 FROM start UNION SELECT r.a, e.z, r.c + 1 FROM r JOIN edge e ON r.b = e.y WHERE r.c < 6",
    "two leaves": "SELECT x, y FROM start UNION"
    " SELECT r.a, f.y FROM r JOIN edge e ON r.b = e.y JOIN start f ON f.x = e.x",
    "twice": "SELECT x, z FROM edge UNION SELECT r.a, f.z FROM r JOIN edge e ON r.b = e.y JOIN edge f ON f.y = e.z",
    "three rules": "SELECT x, y FROM start UNION SELECT r.a, e.z FROM r JOIN edge e ON r.b = e.y UNION"
    " SELECT r.a, e.y FROM r JOIN edge e ON r.b = e.z AND e.x > 2 UNION"
    " SELECT x + 1, z FROM edge WHERE x IS NULL OR x < 3",
    "wide": "SELECT x, y, z, z FROM edge UNION"
    " SELECT r.a, r.b, e.y, e.z FROM r JOIN edge e ON r.c = e.y AND e.z <=> r.d",
    "exists": "SELECT x, y FROM start UNION SELECT r.a, e.z FROM r JOIN edge e ON r.b = e.y"
    " WHERE EXISTS (SELECT 1 FROM start s WHERE s.y = e.z)",
    "filtered": "SELECT x, y FROM start UNION SELECT r.a, e.z FROM r JOIN edge e ON r.b = e.y WHERE r.b <> 'c'",
}
COLUMNS = {"right": "x, y", "depth": "a, b, c", "wide": "a, b, c, d"}


def query_of(name: str) -> str:
    titles = COLUMNS.get(name, "a, b")
    return f"WITH RECURSIVE r ({titles}) AS ({QUERIES[name]}) SELECT * FROM r"


def script(query: str) -> str:
    return f"{STREAMS} {query};"


def batches(seed: int, count: int, size: int) -> list[dict[str, pa.Table]]:
    """Draw rows that come and go, some of them NULL, and some several times."""
    random, there, found = Random(seed), dict[str, list[tuple[object, ...]]]({"edge": [], "start": []}), []
    for _ in range(count):
        batch = {}
        for name, titles in (("edge", "xyz"), ("start", "xy")):
            rows = []
            for _ in range(random.choice((0, 2, size))):
                if there[name] and random.random() < (0.6 if len(there[name]) > size else 0.2):
                    rows.append((*there[name].pop(random.randrange(len(there[name]))), -1))
                else:
                    texts = random.choices("abcdefgh", k=2)
                    row = (random.choice((None, 1, 2, 3, 4)), *(None if random.random() < 0.04 else t for t in texts))
                    rows.append((*row[: len(titles)], 1))
                    there[name].append(row[: len(titles)])
            types = {"x": pa.int32(), "y": pa.string(), "z": pa.string(), MULT: pa.int64()}
            columns = [pa.array([row[i] for row in rows], types[title]) for i, title in enumerate((*titles, MULT))]
            batch[name] = pa.table(columns, [*titles, MULT])
        found.append(batch)
    return found


def check(engines: list[MemoryEngine], query: str, given: list[dict[str, pa.Table]], folder: Path) -> None:
    """Run batches on all engines, with restarts; after each the rows are those of the oracle."""
    for number, engine in enumerate(engines):
        place = folder / str(number)
        place.mkdir()
        engine.start(script(query), place, {})
    oracle = Oracle(engines[0].relations, query)
    for number, batch in enumerate(given):
        for relation, rows in batch.items():
            oracle.push(relation, rows)
        expected = oracle.answer()
        for engine in engines:
            engine.push(batch)
            assert not difference(rows_of(engine.result()), expected, False), (query, number)
            if number % 4 == 2:
                engine.restart()


@pytest.mark.parametrize("name", QUERIES)
def test_oracle_queries(name: str, tmp_path: Path) -> None:
    check([LocalEngine(), VolatileEngine()], query_of(name), batches(1, 12, 8), tmp_path)


SUMS = {
    "SELECT COUNT(*) AS n, SUM(a) AS a, COUNT(b) AS b, SUM(LENGTH(b)) AS l FROM r": (False, True),
    "SELECT a, COUNT(*) AS n, SUM(a + 1) AS s FROM r GROUP BY a": (False, True),
    "SELECT SUBSTRING(b, 1, 1) AS c, COUNT(*) AS n FROM r WHERE b <> 'a' GROUP BY SUBSTRING(b, 1, 1)": (False, True),
    "SELECT COUNT(*) AS n, SUM(a) AS s FROM r WHERE a > 1": (False, True),
    "SELECT COUNT(*) AS n, SUM(a) AS s FROM r WHERE b > 'c'": (True, False),
    "SELECT a, SUM(LENGTH(b)) AS s FROM r GROUP BY a": (True, False),
    "SELECT SUM(a * LENGTH(b)) AS s, AVG(a) AS a FROM r": (True, False),
    "SELECT COUNT(*) AS n, MAX(a) AS m FROM r": (False, True),
    "SELECT a, b, COUNT(*) AS n FROM r GROUP BY a, b": (True, False),
    "SELECT p.a, p.n, q.s FROM (SELECT a, COUNT(*) AS n FROM r GROUP BY a) p,"
    " (SELECT SUM(a * LENGTH(b)) AS s FROM r) q": (True, True),
}


@pytest.mark.parametrize("query", [*list(SUMS)[:2], list(SUMS)[-1], *map(long, list(SUMS)[2:-1])])
def test_oracle_sums_of_parts(query: str, tmp_path: Path) -> None:
    whole = f"WITH RECURSIVE r (a, b) AS ({QUERIES['three rules']}) {query}"
    check([LocalEngine(), VolatileEngine(), PartitionedEngine(3)], whole, batches(3, 12, 8), tmp_path)


@pytest.mark.parametrize(("query", "expected"), SUMS.items())
def test_eager_sums(query: str, expected: tuple[bool, bool], tmp_path: Path) -> None:
    """Rows are listed only if a delta reads both parts of them."""
    path = tmp_path / "q.sql"
    path.write_text(script(f"WITH RECURSIVE r (a, b) AS ({QUERIES['filtered']}) {query}"))
    session = ScriptSession(path)
    feeds = [feed for feed in session.compile(session.script.queries, 1, {}).plan.feeds if feed.auxiliary]
    (feed,) = [feed for feed in feeds if isinstance(feed.auxiliary and feed.auxiliary.kind, Fixpoint)]
    assert feed.auxiliary
    sums = GroupedFixpointMaintainer(feed, feed.auxiliary).sums
    assert (sums.needs_rows, sums.needs_numbers) == expected


@pytest.mark.parametrize("name", ["right", long("three rules"), long("twice")])
def test_oracle_with_kills(name: str, tmp_path: Path) -> None:
    check([KilledEngine(2, seed=3, kills=0.02)], query_of(name), batches(2, 8, 8), tmp_path)


@pytest.mark.parametrize("name", ["three rules", long("wide"), long("twice")])
def test_differential_pools_instead(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fixpoint, "stable_columns", ())
    check([LocalEngine()], query_of(name), batches(1, 12, 8), tmp_path)


@pytest.mark.parametrize(
    ("query", "stable"),
    [
        (QUERIES["right"], (0,)),
        (QUERIES["left"], (1,)),
        (QUERIES["wide"], (0, 1)),
        ("SELECT x, y FROM start UNION SELECT r.a, e.z FROM r JOIN edge e ON r.b = e.y AND r.a <> e.x", ()),
        ("SELECT x, y FROM start UNION SELECT r.a, s.b FROM r JOIN r s ON r.b = s.b", ()),
        ("SELECT x, y FROM start UNION ALL SELECT r.a, e.z FROM r JOIN edge e ON r.b = e.y", ()),
        ("SELECT x, y FROM start UNION SELECT r.a + 1, e.z FROM r JOIN edge e ON r.b = e.y WHERE r.a < 9", ()),
        ("SELECT x, y FROM start UNION SELECT r.a, r.b FROM r JOIN edge e ON r.b = e.y", (0,)),
        (f"{QUERIES['right']} AND NOT EXISTS (SELECT 1 FROM start s WHERE s.y = r.y AND s.x = e.x)", ()),
    ],
)
def test_stable_columns(query: str, stable: tuple[int, ...], tmp_path: Path) -> None:
    titles = "a, b, c, d" if query == QUERIES["wide"] else "x, y" if query.startswith(QUERIES["right"]) else "a, b"
    path = tmp_path / "q.sql"
    path.write_text(script(f"WITH RECURSIVE r ({titles}) AS ({query}) SELECT * FROM r"))
    session = ScriptSession(path)
    compiled = session.compile(session.script.queries, 1, {})
    kinds = [feed.auxiliary.kind for feed in compiled.plan.feeds if feed.auxiliary]
    assert [kind.stable_columns for kind in kinds if isinstance(kind, Fixpoint)] == [stable]
