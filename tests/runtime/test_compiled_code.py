"""Compiled triggers beside the generic kernels, and what becomes of a cache or a compiler that fails."""

import gc
import os
import pickle
import sys
import weakref
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from math import inf, nan
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from llvmlite.binding import parse_bitcode
from numba.core.dispatcher import Dispatcher

from squallpy.codegen.program import PlanCode
from squallpy.runtime import shadow
from squallpy.runtime.batch.direct_batch import DirectBatch
from squallpy.runtime.compiled import background, code_cache, functions
from squallpy.runtime.compiled.code_cache import load_cached, load_code
from squallpy.runtime.compiled.functions import CompiledDerivation, CompiledPlan, CompiledRun, entry_of
from squallpy.runtime.kernels.pool_layout import APPENDED, GROWING
from squallpy.runtime.kernels.view_container import Container
from squallpy.runtime.local_executor import LocalExecutor, Printed
from squallpy.runtime.observers.report import BatchReport
from squallpy.runtime.sources.input import BatchSpans, Input, Slices
from squallpy.testing.engines import LocalEngine, VolatileEngine
from squallpy.testing.memory_source import MemorySource, PushedBatches
from tests.marks import long

ONE = """from squallpy.runtime.kernels.kernel_compiler import kernel

entry = kernel("int64(int64)")


@entry
def one(given):
    return given + 1
"""
SCRIPT = """CREATE STREAM r (k INT NOT NULL, s VARCHAR, v BIGINT) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM t (k INT NOT NULL, w INT NOT NULL) USING csv OPTIONS (path 't');
SELECT s, r.k, SUM(CAST(v AS DECIMAL(20,0)) * 4 * w) AS v, COUNT(v) AS n FROM r JOIN t ON r.k = t.k GROUP BY s, r.k;"""


def rows(draw: Random, count: int, largest: int = 9, deletes: bool = True) -> dict[str, pa.Table]:
    """Rows of both streams, enough for pools, slices and the dictionary to grow."""
    keys = pa.array([draw.randrange(400) for _ in range(count)], pa.int64())
    texts = [draw.choice((None, "", "a", f"text {draw.randrange(900)} of many bytes")) for _ in range(count)]
    values = pa.array([draw.choice((None, draw.randrange(largest))) for _ in range(count)], pa.int64())
    mult = [draw.choice((1, 1, 1, -1)) if deletes else 1 for _ in range(count)]
    columns = {"k": keys, "s": pa.array(texts, pa.string()), "v": values, "__mult": pa.array(mult, pa.int64())}
    other = {"k": keys.slice(0, count // 2), "w": pa.array([draw.randrange(5) for _ in range(count // 2)], pa.int64())}
    return {"r": pa.table(columns), "t": pa.table(other).append_column("__mult", pa.array([1] * (count // 2)))}


@pytest.mark.parametrize("deletes", [long(True), False])
def differential_compiled_triggers(deletes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a batch with products that have no room in 64 bits, which the generic evaluators do in between; deletes of
    rows that are not there are counted."""
    script = SCRIPT if deletes else SCRIPT.replace(", op 'op'", "")
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(script, tmp_path / str(number), {})
    assert engines[0]._executor._direct
    reports = [note_reports(engine._executor, monkeypatch) for engine in engines]
    draw = Random(0)
    for batch in range(5):
        pushed = rows(draw, 3000 if batch == 1 else 300, 2**62 if batch == 3 else 9, deletes)
        found = [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])
    assert sorted_rows(engines[0].result()) == sorted_rows(engines[1].result())
    assert engines[0].row_counts() == engines[1].row_counts()
    counted = [[(r.tuples, r.unmatched, r.duplicates, r.skipped) for r in some] for some in reports]
    assert counted[0] == counted[1] and any(report.unmatched for report in reports[0]) == deletes


def note_reports(executor: LocalExecutor, monkeypatch: pytest.MonkeyPatch) -> list[BatchReport]:
    """List the reports of batches from now on."""
    reports, step = list[BatchReport](), executor.step

    def noting(given: BatchSpans | None = None) -> tuple[Printed, BatchReport]:
        done = step(given)
        reports.append(done[1])
        return done

    monkeypatch.setattr(executor, "step", noting)
    return reports


CHAIN = """CREATE STREAM a (k INT NOT NULL, x DOUBLE) USING csv OPTIONS (path 'a', op 'op');
CREATE STREAM b (k INT NOT NULL, m INT, n INT) USING csv OPTIONS (path 'b', op 'op');
CREATE STREAM c (m INT NOT NULL, g INT) USING csv OPTIONS (path 'c', op 'op');
SELECT g, SUM(x) AS x, COUNT(*) AS n FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m WHERE n < 7 GROUP BY g;
SELECT g, MAX(n) AS n FROM a JOIN b ON a.k = b.k JOIN c ON b.m = c.m GROUP BY g;
SELECT d.g, e.g AS h, f.g AS i, COUNT(*) AS n FROM c d JOIN c e ON d.m = e.m JOIN c f ON e.m = f.m
GROUP BY d.g, e.g, f.g;"""


def differential_compiled_parts_of_statements(tmp_path: Path) -> None:
    """Statements that are done by the first steps of others, in batches of more rows than are added together."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(CHAIN, tmp_path / str(number), {})
    code = engines[0]._code
    assert isinstance(code, CompiledPlan) and not code.code.refused and "# and Δ" in code.code.text
    draw, columns = Random(0), {"a": "kx", "b": "kmn", "c": "mg"}
    stored = {name: list[tuple[int | None, ...]]() for name in columns}
    for batch in range(5):
        pushed = dict[str, pa.Table]()
        for name, fields in columns.items():
            count = 2_000 if batch == 2 else 100
            draw.shuffle(stored[name])
            gone, stored[name] = stored[name][: count // 3], stored[name][count // 3 :]
            come = [(draw.randrange(40), *(draw.choice((None, *range(9))) for _ in fields[1:])) for _ in range(count)]
            stored[name] += come
            given = dict(zip(fields, zip(*come, *gone, strict=True), strict=True))
            pushed[name] = pa.table(given | {"__mult": [1] * len(come) + [-1] * len(gone)})
        found = [engine.push_all(pushed) for engine in engines]
        assert len(found[0][0]) and [*map(sorted_rows, found[0])] == [*map(sorted_rows, found[1])]
    assert [*map(sorted_rows, engines[0].results())] == [*map(sorted_rows, engines[1].results())]


PAIRS = """CREATE STREAM r (k INT NOT NULL, b INT NOT NULL, v INT) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM t (k INT NOT NULL, w INT) USING csv OPTIONS (path 't', op 'op');
SELECT b, SUM(v * w) AS s, COUNT(*) AS n FROM r JOIN t ON r.k = t.k GROUP BY b;
SELECT SUM(r.v) AS s FROM r JOIN t ON r.k = t.k
WHERE r.v < (SELECT AVG(q.v) FROM r q WHERE q.k = r.k) AND t.w > 2;"""


@pytest.mark.parametrize("query", [0, 1])
def differential_compiled_deltas_that_are_not_added_up(query: int, tmp_path: Path) -> None:
    """Keys that hardly repeat, or do, of neighbours or not; rows that come and go in a batch; batches of all sizes."""
    *streams, first, second, _ = PAIRS.split(";")
    engines, script = (
        [VolatileEngine(compile="wait"), VolatileEngine()],
        ";".join([*streams, (first, second)[query], ""]),
    )
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(script, tmp_path / str(number), {})
    direct = engines[0]._executor._direct
    assert direct and direct._by_row
    draw, columns, appended = Random(query), {"r": "kbv", "t": "kw"}, Counter[bool]()
    stored = {name: list[tuple[int | None, ...]]() for name in columns}
    for batch, size in enumerate([30, 1500, 1500, 200, 1500, 1500, 3, 1500, 1500, 1500, 7000, 7000, 100, 1500]):
        pushed, keys = dict[str, pa.Table](), 3 if batch == 4 else 900
        for name, fields in columns.items():
            count = size if name == "r" else 1 + size // 10
            draw.shuffle(stored[name])
            gone, stored[name] = stored[name][: count // 3], stored[name][count // 3 :]
            values = [draw.choice((None, *range(9))) for _ in range(count)]
            come = [(*(draw.randrange(keys) for _ in fields[1:]), value) for value in values]
            stored[name] += come
            both = draw.sample(come, min(40, len(come)))  # they come once more, and go
            signed = [(row, 1) for row in come + both] + [(row, -1) for row in gone + both]
            if batch % 2:
                draw.shuffle(signed)
            given = dict(zip(fields, zip(*(row for row, _ in signed), strict=True), strict=True))
            pushed[name] = pa.table(given | {"__mult": [sign for _, sign in signed]})
        found = [engine.push_all(pushed) for engine in engines]
        assert [*map(sorted_rows, found[0])] == [*map(sorted_rows, found[1])]
        appended.update(direct._sums[name]._area.head[APPENDED] == 1 for name in direct._by_row)
    assert appended[True] and appended[False]
    assert [*map(sorted_rows, engines[0].results())] == [*map(sorted_rows, engines[1].results())]


FEW_GROUPS = """CREATE STREAM r (s VARCHAR, k INT NOT NULL, x DECIMAL(9,2), y DECIMAL(9,2)) USING csv
OPTIONS (path 'r', op 'op');
SELECT s, k, SUM(x * y) AS xy, SUM(x) AS x, COUNT(*) AS n FROM r GROUP BY s, k;"""


def differential_compiled_groups_that_are_remembered(tmp_path: Path) -> None:
    """More groups than records are remembered, which move as others of the batch go; texts of no byte, one and more."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(FEW_GROUPS, tmp_path / str(number), {})
    code, draw, kinds = engines[0]._code, Random(0), (pa.string(), pa.int64(), pa.decimal128(9, 2), pa.decimal128(9, 2))
    assert isinstance(code, CompiledPlan) and "recent_at(" in code.code.text

    def value() -> Decimal | None:
        return draw.choice((None, Decimal(draw.randrange(-999_999_999, 10**9)) / 100))

    for batch in range(6):
        some = 13 if batch % 2 else 3
        come = [
            (draw.choice((None, "", *"abcdefg", "ab", "a text of bytes")), draw.randrange(some), value(), value())
            for _ in range(2_000)
        ]
        signed = [(row, sign) for row in come for sign in draw.choice([(1,), (1, -1), (1, -1, 1)])]
        given = dict(zip("skxy", zip(*(row for row, _ in signed), strict=True), strict=True))
        columns = {name: pa.array(column, kind) for (name, column), kind in zip(given.items(), kinds, strict=True)}
        pushed = {"r": pa.table(columns | {"__mult": pa.array([sign for _, sign in signed])})}
        found = [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])
    assert sorted_rows(engines[0].result()) == sorted_rows(engines[1].result())


TEXTS = """CREATE STREAM r (k INT NOT NULL, s VARCHAR) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM t (k INT NOT NULL, u VARCHAR NOT NULL) USING csv OPTIONS (path 't');
SELECT SUBSTRING(s, 2, 2) AS part, u, COUNT(*) AS n FROM r JOIN t ON r.k = t.k
WHERE (s LIKE 'ä%b%' OR s LIKE '%cb%a' OR s LIKE '%€%b%' OR s LIKE 'abc' OR SUBSTRING(s, 2) IN ('b€', '') OR s IS NULL)
  AND (u LIKE '%b' OR s = u OR SUBSTRING(s, 2, 1) <> SUBSTRING(u, 1, 1) AND NOT (u = 'ä' AND s LIKE '%'))
GROUP BY SUBSTRING(s, 2, 2), u;"""


def differential_compiled_texts(tmp_path: Path) -> None:
    """Patterns and parts of texts, whose characters have one to three bytes: in feeds, and joined by number."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(TEXTS, tmp_path / str(number), {})
    code = engines[0]._code
    assert isinstance(code, CompiledPlan) and not code.code.refused
    draw = Random(0)

    def text() -> str:
        return "".join(draw.choice("aäbc€") for _ in range(draw.randrange(6)))

    for _ in range(4):
        keys = [draw.randrange(60) for _ in range(300)]
        r = {"k": keys, "s": [draw.choice((None, text(), text(), text())) for _ in keys]}
        pushed = {"r": pa.table(r), "t": pa.table({"k": keys[:90], "u": [text()[:2] for _ in range(90)]})}
        found = [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])


NAMES = """CREATE STREAM r (s VARCHAR, t VARCHAR NOT NULL, x INT) USING csv OPTIONS (path 'r', op 'op');
SELECT s, t, SUM(x) AS x FROM r GROUP BY s, t;"""


def differential_compiled_texts_that_are_many(tmp_path: Path) -> None:
    """A dictionary that is asked for texts ahead: long and short ones, NULLs, in it and new, parts of an array."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(NAMES, tmp_path / str(number), {})
    code, draw = engines[0]._code, Random(0)
    assert isinstance(code, CompiledPlan) and "ask_texts(" in code.code.text
    for batch, rows in enumerate((20_000, 1, 17, 3_000, 3_000)):
        numbers = [draw.randrange(15_000 * batch + 20_000) for _ in range(rows + 5)]
        named = pa.table(
            {
                "s": [None if n % 50 == 0 else f"Kunde#ä{n:09}" if n % 7 else f"{n % 100}" for n in numbers],
                "t": ["" if n % 30 == 0 else f"{n:03}" * (n % 13) for n in numbers],
                "x": [n % 9 for n in numbers],
                "__mult": [draw.choice((1, 1, -1)) for _ in numbers],
            }
        )
        found = [engine.push({"r": named.slice(5)}) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])
    assert len(engines[0]._executor._direct._store.dictionary) > 30_000
    assert sorted_rows(engines[0].result()) == sorted_rows(engines[1].result())


REAL_SUMS = """CREATE STREAM r (k INT NOT NULL, x DOUBLE, b BOOLEAN, n INT) USING csv OPTIONS (path 'r'{op});
CREATE STREAM t (k INT NOT NULL, y DOUBLE, g VARCHAR) USING csv OPTIONS (path 't');
SELECT g, SUM(x) AS sx, SUM(x * y) AS xy, SUM(-y * n) AS yn, AVG(y) AS ay, COUNT(*) AS n FROM r JOIN t ON r.k = t.k
GROUP BY g;
SELECT SUM(x) AS s, SUM(x * n) FILTER (WHERE b) AS f, COUNT(*) AS n FROM r; SELECT k, SUM(x) AS s FROM r GROUP BY k;"""


@pytest.mark.parametrize("op", [long(""), ", op 'op'"])
def differential_compiled_sums_of_doubles(op: str, tmp_path: Path) -> None:
    """Also of infinities, NaN, products without room, zeros of both signs, and NULL; deletes leave none."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(REAL_SUMS.format(op=op), tmp_path / str(number), {})
    code = engines[0]._code
    assert isinstance(code, CompiledPlan) and not code.code.refused and engines[0]._executor._direct
    draw, seen = Random(0), list[tuple[object, ...]]()

    def double() -> float | None:
        return draw.choice((None, 0.1, -0.0, 0.0, 1e300, -1e300, 1e-300, inf, -inf, nan, *[draw.random()] * 20))

    for batch in range(4):
        rows = [
            (draw.randrange(40), double(), draw.choice((None, True, False)), draw.choice((None, -2, 0, 7)))
            for _ in range(300)
        ]
        old = draw.sample(seen, len(seen) // 2) if op else []
        seen += rows
        columns = dict(zip("kxbn", zip(*rows, *old, strict=True), strict=True))
        r = pa.table(columns | ({"__mult": [1] * 300 + [-1] * len(old)} if op else {}))
        for row in old:
            seen.remove(row)
        t = {"k": [*range(40)], "y": [double() for _ in range(40)], "g": [draw.choice("abc") for _ in range(40)]}
        for engine in engines:
            engine.push_all({"r": r, "t": pa.table(t)} if batch < 2 else {"r": r})
        for one, other in zip(*(engine.results() for engine in engines), strict=True):
            assert len(one) and sorted_rows(one) == sorted_rows(other)
    assert engines[0].row_counts() == engines[1].row_counts()


REMAINDERS = """CREATE STREAM r (a INT NOT NULL, b BIGINT, c BIGINT NOT NULL) USING csv OPTIONS (path 'r');
SELECT a % 3 AS k, SUM(a % c) AS x, SUM(b % c) AS y, SUM(c % b) AS z, SUM(ABS(a)) AS p, COUNT(ABS(a) % 2 = 1) AS n
FROM r GROUP BY a % 3;"""


def differential_compiled_remainders(tmp_path: Path) -> None:
    """Of both signs, by 0, of NULL, and of the least integer, whose absolute value has no room."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(REMAINDERS, tmp_path / str(number), {})
    code = engines[0]._code
    assert isinstance(code, CompiledPlan) and not code.code.refused
    draw = Random(0)
    for least in (-5, -(2**63), -7):
        a = [draw.randrange(-9, 9) for _ in range(200)]
        b, c = ([draw.choice([*some, 0, least, 2**63 - 1, *range(-6, 6)]) for _ in a] for some in ([None], [3]))
        pushed = {"r": pa.table({"a": a, "b": b, "c": c})}
        found = [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])


OVER = """CREATE STREAM r (k INT NOT NULL, s VARCHAR, v BIGINT) USING csv OPTIONS (path 'r');
CREATE STREAM t (k INT NOT NULL, w INT NOT NULL) USING csv OPTIONS (path 't');
CREATE VIEW sums AS SELECT r.k, SUM(v * w) AS x FROM r JOIN t ON r.k = t.k GROUP BY r.k;
SELECT k, x FROM sums; SELECT k FROM sums WHERE x > 9 ORDER BY x DESC, k LIMIT 3;
SELECT COUNT(*) AS n, SUM(x) AS x FROM sums;"""


def differential_compiled_queries_over_one_view(tmp_path: Path) -> None:
    """Two print one result, of which one is cut, and the third shares their join by a partial product."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(OVER, tmp_path / str(number), {})
    plan = engines[0]._compiled.plan
    assert len(plan.results) == 2 and any(s.partial for t in plan.program.triggers for s in t.statements)
    assert engines[0]._executor._direct
    draw = Random(0)
    for _ in range(6):
        pushed = rows(draw, 300, deletes=False)
        for one, other in zip(*(engine.push_all(pushed) for engine in engines), strict=True):
            assert len(one) and sorted_rows(one) == sorted_rows(other)
        for one, other in zip(*(engine.results() for engine in engines), strict=True):
            assert sorted_rows(one) == sorted_rows(other)


NESTED = """CREATE STREAM r (k INT, s VARCHAR, v DECIMAL(19,0)) USING csv OPTIONS (path 'r');
CREATE STREAM t (k INT NOT NULL) USING csv OPTIONS (path 't');
SELECT q.s, q.c, COUNT(*) AS n FROM t JOIN (SELECT k, s, COUNT(*) AS c FROM r GROUP BY k, s HAVING SUM(v) > 20) AS q
ON t.k = q.k WHERE EXISTS (SELECT 1 FROM r WHERE r.k = t.k + 1) GROUP BY q.s, q.c;"""


def differential_compiled_auxiliary_relations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of NULLs and texts; sums of groups beside 64 bits are up to the maintainers, in between."""
    waited, serve = list[int](), DirectBatch._serve

    def count(batch: DirectBatch, number: int) -> None:
        waited.append(number)
        serve(batch, number)

    monkeypatch.setattr(DirectBatch, "_serve", count)
    monkeypatch.setattr(shadow, "SHARE", float("inf"))
    engines = [VolatileEngine(compile="wait"), VolatileEngine(compile="shadow"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(NESTED, tmp_path / str(number), {})
    assert engines[0]._executor._direct
    draw = Random(0)
    for batch in range(6):
        large = 5 * 10**18 if batch > 3 else 9
        r = [(draw.choice((None, *range(40))), draw.choice((None, "", "a", "bb")), draw.choice((None, 3, large)))
             for _ in range(150)]  # fmt: skip
        keys, texts, values = zip(*r, strict=True)
        v = pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(19, 0))
        pushed = {"r": pa.table({"k": keys, "s": texts, "v": v}), "t": pa.table({"k": [draw.randrange(40) for _ in r]})}
        found = [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1]) == sorted_rows(found[2])
    assert waited and engines[0]._executor._direct and engines[1]._executor._direct


BELOW_MEAN = """CREATE STREAM r (k INT NOT NULL, v BIGINT) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM t (k INT NOT NULL, w BIGINT) USING csv OPTIONS (path 't', op 'op');
SELECT SUM(r.v) AS v, COUNT(*) AS n FROM r JOIN t ON t.k = r.k
WHERE t.w < 3 AND r.v < (SELECT 0.9 * AVG(x.v) FROM r AS x WHERE x.k = t.k);"""


def differential_compiled_domain(tmp_path: Path) -> None:
    """Means change of groups that nothing joins, that come to be joined in the same batch, and that go."""
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(BELOW_MEAN, tmp_path / str(number), {})
    direct = engines[0]._executor._direct
    assert direct and [c.code.domain for c in direct._calls if isinstance(c, CompiledDerivation)] == ["M_T"]
    draw, there = Random(0), dict[str, list[tuple[int, int]]](r=[], t=[])
    for batch in range(6):
        pushed = dict[str, pa.Table]()
        for name, count in (("r", 200), ("t", 2 * batch)):
            gone = [there[name].pop(draw.randrange(len(there[name]))) for _ in range(len(there[name]) // 2)]
            come = [(draw.randrange(90), draw.randrange(6)) for _ in range(count)]
            there[name] += come
            k, w = zip(*gone, *come, strict=True) if gone or come else ((), ())
            op = pa.array(["-"] * len(gone) + ["+"] * len(come), pa.string())
            pushed[name] = pa.table({"k": pa.array(k, pa.int32()), "v" if name == "r" else "w": w, "op": op})
        found = [engine.push(pushed) for engine in engines]
        assert sorted_rows(found[0]) == sorted_rows(found[1])


ORDERED = """CREATE STREAM r (k INT NOT NULL, s VARCHAR, v BIGINT) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM t (k INT NOT NULL, w INT NOT NULL) USING csv OPTIONS (path 't');
SELECT q.high, q.low, SUM(u.v) AS v, COUNT(*) AS n FROM t
JOIN (SELECT k, MAX(v) AS high, MIN(v + 0.5) AS low FROM r GROUP BY k) AS q ON t.k = q.k JOIN r AS u ON u.v < t.w
WHERE t.w < (SELECT MAX(v) FROM r) AND u.s <> 'a' GROUP BY q.high, q.low;"""


def differential_compiled_extremes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views with sorted indexes; what is not compiled is interpreted in the middle of a compiled batch."""
    monkeypatch.setattr(shadow, "SHARE", float("inf"))
    engines = [VolatileEngine(compile="shadow"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(ORDERED, tmp_path / str(number), {})
    draw = Random(0)
    for batch in range(5):
        pushed = rows(draw, 300 if batch else 0, deletes=batch > 1)
        pushed |= {"t": pushed["t"].slice(0, 20)}
        found = [engine.push(pushed) for engine in engines]
        assert sorted_rows(found[0]) == sorted_rows(found[1]) and len(found[0]) >= bool(batch)
    assert engines[0]._executor._direct and engines[0]._executor._shadow


RANGED = """CREATE STREAM r (k INT NOT NULL, s VARCHAR, v DECIMAL(19,0)) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM t (k INT NOT NULL, w BIGINT) USING csv OPTIONS (path 't');
"""
SUMS_IN_RANGES = """SELECT SUBSTRING(q.s, 1, 2) AS part, q.v, COUNT(*) AS n
FROM (SELECT k, s, SUM(v) AS v FROM r GROUP BY k, s) AS q JOIN t ON t.k = q.k
WHERE q.v > (SELECT SUM(v) * 0.01 FROM r) AND t.w < q.v GROUP BY SUBSTRING(q.s, 1, 2), q.v;"""
OVERLAID = "SELECT r.s, COUNT(*) AS n FROM r JOIN t ON r.v + 1 > t.w GROUP BY r.s;"


@pytest.mark.parametrize("query", [OVERLAID, SUMS_IN_RANGES])
def differential_compiled_ranges(query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges by keys, sums of ranges, ranges that are cut, more rows than have room together; texts that are computed.

    Numbers of 38 digits are interpreted in between, once there are some, and the lookups of that are counted.
    """
    runs, serve = list[bool](), DirectBatch._serve

    def count(batch: DirectBatch, number: int) -> None:
        runs.append(isinstance(batch._calls[number], CompiledRun))
        serve(batch, number)

    monkeypatch.setattr(DirectBatch, "_serve", count)
    engines = [VolatileEngine(compile="wait"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(RANGED + query, tmp_path / str(number), {})
    direct = engines[0]._executor._direct
    assert direct and all(isinstance(call, CompiledRun | CompiledDerivation) for call in direct._calls)
    draw, reports = Random(0), note_reports(engines[0]._executor, monkeypatch)
    gone = list[tuple[int, str | None, int | None]]()
    for batch in range(8):
        large = (10**18, 5 * 10**18, -(2**63) + 7) if 3 < batch < 6 else (7,)
        names = None, "", "añb", f"{batch}"
        r = [(draw.randrange(3), draw.choice(names), draw.choice((None, 3, *large))) for _ in range(60)]
        ends = (-(2**63) + 1, 2**63 - 1) if batch == 1 else (5,)
        w = [draw.choice((None, draw.randrange(-900, 9), *ends)) for _ in range(700)]
        keys, texts, values = zip(*(*r, *gone), strict=True)
        v = pa.array([None if value is None else Decimal(value) for value in values], pa.decimal128(19, 0))
        mult = [1] * len(r) + [-1] * len(gone)
        pushed = {"r": pa.table({"k": keys, "s": texts, "v": v, "__mult": mult})}
        pushed |= {"t": pa.table({"k": [draw.randrange(3) for _ in w], "w": pa.array(w, pa.int64())})}
        gone = draw.sample(r, 20) if batch in (1, 2, 4) else []
        before, found = len(runs), [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])
        assert batch > 3 or len(runs) == before
    assert any(runs) and engines[0]._executor._direct is direct
    assert sum(report.compared or 0 for report in reports) >= sum(report.pairs or 0 for report in reports) > 0
    assert engines[0]._executor.work > 0


DOUBLES = """CREATE STREAM r (k INT NOT NULL, x DOUBLE, d DECIMAL(10,2)) USING csv OPTIONS (path 'r');
CREATE STREAM t (k INT NOT NULL, y DOUBLE NOT NULL) USING csv OPTIONS (path 't');
SELECT x, y, q.a, COUNT(*) AS n FROM r JOIN t ON r.k = t.k JOIN (SELECT k, AVG(d) AS a FROM r GROUP BY k) AS q
ON q.k = r.k
WHERE (x / y < d OR x * 2.0 - y > CAST(d AS DOUBLE) + 1.0 OR x >= y OR x IS NULL) AND (a < x OR a IS NULL OR y <> x)
  AND CASE WHEN r.k > 3 THEN x ELSE 0.5 END < 1e300
GROUP BY x, y, q.a;"""


def differential_compiled_doubles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN is behind all numbers, -0.0 is 0.0, a quotient by 0 is NULL, and a mean is the same wherever it is made."""
    monkeypatch.setattr(shadow, "SHARE", float("inf"))
    engines = [VolatileEngine(compile="wait"), VolatileEngine(compile="shadow"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(DOUBLES, tmp_path / str(number), {})
    assert engines[0]._executor._direct
    draw, some = Random(0), (0.0, -0.0, float("nan"), float("inf"), 1.5, -2.25, 1e-3, 7.0)
    for _ in range(5):
        keys = [draw.randrange(12) for _ in range(60)]
        d = [draw.choice((None, Decimal(draw.randrange(-999, 999)) / 100)) for _ in keys]
        r = {"k": keys, "x": [draw.choice((None, *some)) for _ in keys], "d": pa.array(d, pa.decimal128(10, 2))}
        t = {"k": keys[:8], "y": [draw.choice(some) for _ in range(8)]}
        found = [engine.push({"r": pa.table(r), "t": pa.table(t)}) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1]) == sorted_rows(found[2])
    assert engines[0]._executor._direct and engines[1]._executor._direct


@pytest.mark.parametrize(
    ("killed", "engine_of"), [(False, LocalEngine), (True, VolatileEngine), long(False, VolatileEngine)]
)
def differential_compiled_in_the_background(
    killed: bool, engine_of: type[VolatileEngine | LocalEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run switches between two batches, with a checkpoint too; where the compiler is killed, it goes on as it was."""
    monkeypatch.setattr(background, "WORTH", 0.0)
    monkeypatch.setattr(background, "_LOOK", 0.0)
    monkeypatch.setenv("SQUALLPY_CODE_DIR", str(tmp_path))
    code_cache.code_folder.cache_clear()
    engines = [engine_of(compile="background"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(SCRIPT.replace(", op 'op'", ""), tmp_path / str(number), {})
    executor, draw = engines[0]._executor, Random(0)
    compiler = executor._compiler
    assert compiler
    for batch in range(4):
        pushed = rows(draw, 50, deletes=False)
        found = [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])
        if batch == 1:
            assert compiler._process and os.getpgid(compiler._process.pid) != os.getpgrp()
            if killed:
                compiler._process.kill()
            compiler._process.wait()
    code_cache.code_folder.cache_clear()
    stage = executor._stages.stage if isinstance(executor, LocalExecutor) else executor._stages._executors[0]
    assert any(isinstance(step, CompiledRun) for step in stage._steps) != killed


class Resident(MemorySource):
    """Rows in memory that compiled code reads in place."""

    def resident(self, columns: tuple[str, ...]) -> pa.RecordBatch | None:
        return self.table.select(list(columns)).combine_chunks().to_batches()[0]


def differential_rows_in_memory(tmp_path: Path) -> None:
    """A batch is one call, which may let the room for changed rows grow; without an answer it is done as ever."""
    engine, draw = VolatileEngine(compile="wait"), Random(0)
    engine.start(SCRIPT.replace(", op 'op'", ""), tmp_path, {})
    sources, batches = {name: Resident(each.relation) for name, each in engine._sources.items()}, PushedBatches()
    for batch in range(6):
        pushed = rows(draw, 3000 if batch == 2 else 10 * batch, 2**62 if batch == 3 else 9, deletes=False)
        for name, some in pushed.items():
            sources[name].add(some)
        batches.push({name: source.rows for name, source in sources.items()})
    plan, input = engine._compiled.plan, Input(sources, batches)
    executors = [LocalExecutor(plan, input, compiled=code) for code in (engine._code, None)]
    assert executors[0]._rows
    for _ in range(6):
        (one, report), (other, its) = (executor.step() for executor in executors)
        assert one[0] and other[0]
        for a, b in ((one[0].deletes, other[0].deletes), (one[0].inserts, other[0].inserts)):
            assert sorted_rows(a) == sorted_rows(b)
        assert (report.tuples, report.read_rows) == (its.tuples, its.read_rows)
    assert sorted_rows(executors[0].final()[0]) == sorted_rows(executors[1].final()[0])


def test_views_that_began_empty_grow_step_by_step(tmp_path: Path) -> None:
    """An index that is only made wider when it is full would have no room between its entries before."""
    engine = VolatileEngine(compile="wait")
    engine.start(SCRIPT.replace(", op 'op'", ""), tmp_path, {})
    [r, t], batches = engine._sources.values(), PushedBatches()
    for keys in (range(3000), range(3000, 5000), range(100)):
        r.add(pa.table({"k": pa.array(keys, pa.int64()), "s": ["a"] * len(keys), "v": pa.array(keys, pa.int64())}))
        t.add(pa.table({"k": pa.array(keys, pa.int64()), "w": pa.array(keys, pa.int64())}))
        batches.push({name: source.rows for name, source in engine._sources.items()})
    executor = LocalExecutor(engine._compiled.plan, Input(engine._sources, batches), compiled=engine._code)
    for _ in range(3):
        executor.step()
    pools = [executor.store.pool(name) for name in executor.store if len(executor.store[name]) == 5000]
    assert len(pools) >= 3 and not any(pool._area.head[GROWING] for pool in pools)


def with_one_more(view: Container) -> Callable[[DirectBatch, Slices, bool], object]:
    """Compiled code that adds a row too many to a view."""
    right = DirectBatch.__call__

    def wrong(batch: DirectBatch, slices: Slices, first: bool) -> object:
        view.upsert(np.array([[401]]), np.array([[1, 0, 0]]))
        return right(batch, slices, first)

    return wrong


@pytest.mark.parametrize("wrong", [False, True])
def differential_shadow(
    wrong: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Batches are interpreted on a copy: where a view differs, also in strings that are new, these results count."""
    monkeypatch.setattr(shadow, "SHARE", float("inf"))
    engines = [VolatileEngine(compile="shadow"), VolatileEngine()]
    for number, engine in enumerate(engines):
        (tmp_path / str(number)).mkdir()
        engine.start(SCRIPT.replace(", op 'op'", ""), tmp_path / str(number), {})
    executor, draw = engines[0]._executor, Random(0)
    for batch in range(4):
        if wrong and batch == 2:
            monkeypatch.setattr(DirectBatch, "__call__", with_one_more(executor.store["M_T"]))
        pushed = rows(draw, 200, deletes=False)
        found = [engine.push(pushed) for engine in engines]
        assert len(found[0]) and sorted_rows(found[0]) == sorted_rows(found[1])
    assert sorted_rows(engines[0].result()) == sorted_rows(engines[1].result())
    told = [record.__dict__["fields"] for record in caplog.records if record.message == "compiled code differs"]
    assert told == ([{"views": "M_T"}] if wrong else [])
    assert (executor._direct is None) == wrong


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.to_pylist()))


def test_code_is_taken_from_the_disk(tmp_path: Path) -> None:
    assert load_code(ONE, tmp_path).one(4) == 5
    assert len(list(tmp_path.glob("triggers_*.py"))) == 1 and list(tmp_path.glob("__pycache__/*.nbc"))
    assert load_code(ONE, tmp_path).one(5) == 6


def test_disk_has_machine_code_without_bitcode(tmp_path: Path) -> None:
    """Which is most of what would be read and parsed, to be inlined where nothing inlines it: names are kept of it."""
    load_code(ONE, tmp_path)
    [path] = tmp_path.glob("__pycache__/*.nbc")
    (_, _, (machine_code, bitcode)), entries, *_ = pickle.loads(path.read_bytes())
    functions = {each.name: str(each) for each in parse_bitcode(bitcode).functions if not each.is_declaration}
    assert {entries.llvm_func_name, entries.llvm_cpython_wrapper_name} == functions.keys()
    assert all("trap" in text and "ret" not in text for text in functions.values()) and b"ELF" in machine_code
    cached = load_cached(ONE, tmp_path)
    assert cached and cached.one(4) == 5 and entry_of(cached.one)


def test_code_that_nobody_has_compiled_is_not_written(tmp_path: Path) -> None:
    assert load_cached(ONE, tmp_path) is None and not list(tmp_path.iterdir())


def test_code_goes_when_nobody_calls_it(tmp_path: Path) -> None:
    """A session may have thousands of queries, one after the other: nothing keeps their functions."""
    made = load_code(ONE, tmp_path)
    there = weakref.ref(made.one)
    recent: Any = Dispatcher  # NB: numba keeps the last hundred
    recent._recent.clear()
    assert made.one(4) == 5 and not [name for name in sys.modules if name.startswith("squallpy_triggers")]
    del made
    gc.collect()
    assert there() is None


def test_another_process_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUALLPY_CODE_DIR", str(tmp_path))
    code_cache.code_folder.cache_clear()
    monkeypatch.setattr(code_cache, "_load", None)
    assert code_cache.load_compiled_apart(ONE).one(4) == 5
    with pytest.raises(OSError, match="SyntaxError: invalid syntax"):
        code_cache.load_compiled_apart("no code\n")
    code_cache.code_folder.cache_clear()


def test_modules_used_longest_ago_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_cache, "MOST", 2)
    texts = [ONE + f"# {number}\n" for number in range(3)]
    for number, text in enumerate(texts[:2]):
        load_code(text, tmp_path)
        os.utime(code_cache.write_code(text, tmp_path), (number, number))
    assert load_cached(texts[0], tmp_path)
    load_code(texts[2], tmp_path)
    stems = {path.stem for path in tmp_path.glob("triggers_*.py")}
    assert stems == {code_cache.write_code(texts[number], tmp_path).stem for number in (0, 2)}
    assert {path.name.partition(".")[0] for path in tmp_path.glob("__pycache__/*")} == stems
    assert load_cached(texts[0], tmp_path) and load_cached(texts[2], tmp_path)


@pytest.mark.parametrize("pattern", ["triggers_*.py", "__pycache__/*.nbi", "__pycache__/*.nbc"])
def fault_damaged_code_is_made_anew(pattern: str, tmp_path: Path) -> None:
    load_code(ONE, tmp_path)
    for path in tmp_path.glob(pattern):
        path.write_bytes(b"damaged")
    module = load_cached(ONE, tmp_path)
    assert module is None or module.one(4) == 5  # the source alone is written anew
    assert load_code(ONE, tmp_path).one(4) == 5


def fault_code_of_another_version_or_processor_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {
        "numba.__version__": "0.1",
        "squallpy.runtime.kernels.kernel_compiler.source_stamp": lambda file: b"other kernels",
        "numba.core.codegen.JITCPUCodegen.magic_tuple": lambda self: ("another", "processor", ""),
    }
    for name, value in others.items():
        load_code(ONE, tmp_path)
        assert load_cached(ONE, tmp_path)
        with monkeypatch.context() as other:
            other.setattr(name, value)
            assert load_cached(ONE, tmp_path) is None
            assert load_code(ONE, tmp_path).one(4) == 5
            assert load_cached(ONE, tmp_path)


def fault_two_processes_that_compile_the_same_share_it(tmp_path: Path) -> None:
    processes = [code_cache.start_compiler(code_cache.write_code(ONE, tmp_path)) for _ in range(2)]
    assert load_code(ONE, tmp_path).one(4) == 5
    assert [process.wait() for process in processes] == [0, 0]
    assert load_cached(ONE, tmp_path) and not list(tmp_path.glob("__pycache__/*.tmp*"))


def fault_a_folder_that_nobody_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUALLPY_CODE_DIR", str(tmp_path))
    code_cache.code_folder.cache_clear()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    own = code_cache.code_folder()
    code_cache.code_folder.cache_clear()
    assert own.parent != tmp_path and load_code(ONE, own).one(4) == 5
    rmtree(own)


def fault_a_background_compiler_without_room_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(text: str, folder: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(background, "write_code", fail)
    monkeypatch.setattr(background, "WORTH", 0.0)
    compiler = background.BackgroundCompiler(PlanCode((), (), (), ()))
    assert compiler.note(1.0) is None and compiler.note(1.0) is None
    assert [each.message for each in caplog.records] == ["not compiled"]


def fault_a_folder_of_somebody_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUALLPY_CODE_DIR", str(tmp_path))
    code_cache.code_folder.cache_clear()
    own = code_cache.code_folder()
    assert own.parent == tmp_path and own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o755)
    code_cache.code_folder.cache_clear()
    assert code_cache.code_folder() == own and own.stat().st_mode & 0o777 == 0o700
    code_cache.code_folder.cache_clear()
    monkeypatch.setattr(os, "getuid", lambda: own.stat().st_uid + 1)
    assert code_cache.code_folder().parent != tmp_path
    code_cache.code_folder.cache_clear()


@pytest.mark.parametrize("step", ["print_plan", "load_cached", "load_compiled_apart"])
def fault_a_compiler_that_fails_leaves_the_kernels(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(given: object) -> None:
        raise MemoryError("no room for the compiler")

    monkeypatch.setattr(functions, step, fail)
    engine = VolatileEngine(compile="background" if step == "load_cached" else "wait")
    engine.start(SCRIPT, tmp_path, {})
    assert len(engine.push(rows(Random(0), 20)))
    assert [each.message for each in caplog.records] == ["not compiled"]
