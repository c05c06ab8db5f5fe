"""Places that are set: right wherever they are, or refused."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings, parse_settings
from squallpy.catalog.relation import MULT
from squallpy.program.variable_names import Names
from squallpy.script_session import ScriptSession
from squallpy.testing.engines import PartitionedEngine, VolatileEngine

STREAMS = """
CREATE STREAM r (a INT NOT NULL, b INT NOT NULL) USING csv OPTIONS (path 'r.csv', op 'o');
CREATE STREAM s (b INT NOT NULL, c INT NOT NULL) USING csv OPTIONS (path 's.csv', op 'o');
CREATE STREAM t (c INT NOT NULL, d INT NOT NULL) USING csv OPTIONS (path 't.csv', op 'o');
"""
QUERIES = {
    "join": "SELECT r.b, COUNT(*) AS n, SUM(a * d) AS x FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c GROUP BY r.b;",
    "groups": "SELECT a, SUM(n) AS x FROM r JOIN (SELECT b, c, COUNT(*) AS n FROM s GROUP BY b, c) q ON r.b = q.b "
    "WHERE n > 1 GROUP BY a;",
    "total": "SELECT b, COUNT(*) AS n FROM r WHERE a > (SELECT AVG(c) FROM s) GROUP BY b;",
    "extreme": "SELECT a, m FROM r JOIN (SELECT b, MAX(c) AS m FROM s GROUP BY b) q ON r.b = q.b;",
}


def session_of(room: Path, query: str) -> ScriptSession:
    (room / "q.sql").write_text(STREAMS + query)
    return ScriptSession(room / "q.sql")


def everywhere_it_could_be(room: Any, query: Any) -> Iterator[tuple[str, str]]:
    """(view, keys) for each view but the result: each key, all keys, everywhere."""
    session = session_of(room, query)
    for view in session.compile(session.script.queries[0], 1, {}).program.views[1:]:
        names = Names(view.keys)
        keys = [names(key) for key in view.keys]
        yield from (
            (view.name, place) for place in dict.fromkeys([*keys, ",".join(reversed(keys)), "everywhere"]) if place
        )


def batches(seed: Any = 3) -> Iterator[dict[str, pa.Table]]:
    draw, there = random.Random(seed), {"r": [], "s": [], "t": []}
    for _ in range(3):
        pushed = {}
        for name, columns in (("r", "ab"), ("s", "bc"), ("t", "cd")):
            rows = [(draw.randrange(5), draw.randrange(5), 1) for _ in range(12)]
            gone = draw.sample(there[name], len(there[name]) // 3)
            there[name] = [row for row in there[name] if row not in gone] + [row[:2] for row in rows]
            rows += [(*row, -1) for row in gone]
            pushed[name] = pa.table(dict(zip([*columns, MULT], zip(*rows, strict=True), strict=True)))
        yield pushed


def answers(engine: PartitionedEngine | VolatileEngine, script: str, room: Path) -> Iterator[list[dict[str, int]]]:
    room.mkdir()
    engine.start(script, room, {})
    for pushed in batches():
        engine.push(pushed)
        yield sorted(engine.result().to_pylist(), key=repr)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def differential_right_wherever_a_view_is_set_to_be(tmp_path: Path, query: str) -> None:
    expected = list(answers(VolatileEngine(), STREAMS + query, tmp_path / "one"))
    tried = refused = 0
    for number, (view, keys) in enumerate(everywhere_it_could_be(tmp_path, query)):
        engine = PartitionedEngine(3)
        engine._settings = Settings(partition=((view, keys),))
        try:
            assert list(answers(engine, STREAMS + query, tmp_path / str(number))) == expected, (view, keys)
            assert engine._compiled.plan.pinned_pools == (view,)
            tried += 1
        except SquallError as error:
            assert error.code == "SQ7003", (view, keys)
            refused += 1
    assert tried > 2 and (refused > 0) == (query == QUERIES["extreme"])


def differential_a_copy_beside_views_that_are_set(tmp_path: Path) -> None:
    """A part of a copy is not sent by each partition that has it."""
    query = STREAMS + QUERIES["join"]
    engine = PartitionedEngine(4)
    engine._settings = Settings(partition=(("M_T", "c"), ("M_RS", "c"), ("M_S", "everywhere")))
    assert list(answers(engine, query, tmp_path / "set")) == list(answers(VolatileEngine(), query, tmp_path / "one"))


@pytest.mark.parametrize(
    ("query", "set", "line"),
    [
        ("join", "M_SS=b", 'SQ7001 partition.M_SS: the query has no view "M_SS", did you mean "M_S"?'),
        ("join", "M_S=bb", 'SQ7003 partition.M_S: the view has no key "bb", did you mean "b"?'),
        ("join", "q=b", "SQ7003 partition.q: Q is the result, which is on the driver"),
        ("total", "M_S=b", 'SQ7003 partition.M_S: the view has no key "b", everywhere is all that it can be'),
        ("extreme", "M_S=c", "SQ7003 partition.M_S=c: the groups of N1 would be split, spread it by b"),
    ],
)
def golden_places_that_cannot_be(tmp_path: Path, query: str, set: str, line: str) -> None:
    session = session_of(tmp_path, QUERIES[query])
    session.settings = parse_settings([f"partition.{set}"])
    for partitions in (1, 2):
        with pytest.raises(SquallError) as raised:
            session.compile(session.script.queries[0], partitions, {})
        assert str(raised.value) == line


def golden_no_places_go_with_it(tmp_path: Path) -> None:
    query = "SELECT a, b FROM r WHERE b >= ALL (SELECT c FROM s WHERE s.b = r.a);"
    (tmp_path / "q.sql").write_text(STREAMS.replace(" NOT NULL", "") + query)
    session = ScriptSession(tmp_path / "q.sql", parse_settings(["partition.M_R=b"]))
    with pytest.raises(SquallError) as raised:
        session.compile(session.script.queries[0], 2, {})
    assert str(raised.value) == (
        "SQ7003 partition.M_R=b: no placement of the other views is possible with it: the groups of an "
        "auxiliary relation change in one stage and are read in another"
    )


def test_the_last_word_on_a_view_counts() -> None:
    settings = parse_settings(["partition.M_S=b", "partition.M_T=c", "partition.m_s=everywhere"])
    assert settings.partition == (("M_T", "c"), ("m_s", "everywhere"))
    with pytest.raises(SquallError, match="needs keys"):
        parse_settings(["partition.M_S="])


def golden_explain_stages_shows_what_was_set(tmp_path: Path) -> None:
    session = session_of(tmp_path, QUERIES["join"])
    session.settings = parse_settings(["partition.M_S=c,b"])
    (line,) = (line for line in session.explain("stages").splitlines() if line.startswith("PLACED"))
    assert line.startswith("PLACED as set: M_S(b, c)") and line.endswith(" by c, b")
