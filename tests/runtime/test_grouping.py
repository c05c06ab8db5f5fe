"""Programs over record batches: what they make of a batch is what vectors make of it, or nothing."""

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import Kind
from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.physical.planner import place
from squallpy.runtime.evaluate.kernel_runner import ExportedBatch, ExportedRange
from squallpy.runtime.evaluate.vectors import Vec, arrow_type, from_arrow, to_arrow
from squallpy.runtime.ingest.feed import Feeder
from squallpy.runtime.kernels.dictionary import Dictionary

STREAM = """CREATE STREAM t (
    i BIGINT, j INT NOT NULL, p DECIMAL(15, 2), q DECIMAL(4, 1) NOT NULL, w DECIMAL(30, 3), x DOUBLE, b BOOLEAN,
    d DATE, e DATE NOT NULL, at TIMESTAMP, s VARCHAR, u VARCHAR NOT NULL
) USING csv OPTIONS (path '-'{});"""
CODED = [
    "SELECT i, SUM(p * (1 - q)), COUNT(*) FROM t WHERE d > DATE '1970-01-03' AND i < 5 GROUP BY i",
    "SELECT j, SUM(i), SUM(i + j), SUM(i * i - j) FROM t GROUP BY j",
    "SELECT SUM(p), COUNT(w), SUM(p + q) FROM t WHERE p BETWEEN 1 AND 5 OR q = 3 OR w < 2",
    "SELECT x, COUNT(x) FROM t WHERE x > 0.5 OR NOT b GROUP BY x",
    "SELECT w, b, at, COUNT(*) FROM t WHERE b IS NOT NULL OR at >= TIMESTAMP '1970-01-01 00:00:01' GROUP BY w, b, at",
    "SELECT YEAR(d), MONTH(e), DAY(d), COUNT(*) FROM t WHERE d <> e GROUP BY YEAR(d), MONTH(e), DAY(d)",
    "SELECT s, u, COUNT(*) FROM t WHERE u <> 'a' GROUP BY s, u",
    "SELECT SUM(CASE WHEN s = 'a' THEN p WHEN b THEN q END), SUM(CASE WHEN i IS NULL THEN 1 ELSE 0 END) FROM t",
    "SELECT COUNT(*) FROM t WHERE s IN ('a', 'ab') OR u >= 'b' OR 'é' < s OR s = '' OR NOT s <= 'a'",
    "SELECT u, COUNT(*) FROM t WHERE s LIKE 'a%' OR LENGTH(s) = 1 OR SUBSTRING(u, 1, 1) IN ('b', 'é') GROUP BY u",
    "SELECT COUNT(*) FROM t WHERE i IN (1, 2, NULL) OR NOT (i IN (3, NULL)) OR j IN (1, 2)",
    "SELECT UPPER(s), COUNT(*) FROM t WHERE e + INTERVAL 1 DAY > d GROUP BY UPPER(s)",
    "SELECT CAST(q AS DECIMAL(9, 4)), SUM(CAST(p AS DECIMAL(15, 3))), SUM(-i) FROM t GROUP BY CAST(q AS DECIMAL(9, 4))",
    "SELECT SUM(p) FROM t WHERE i / j > 1 OR p / q < 0.5 OR x / x = 1",
    "SELECT x * 2 - p, COUNT(*) FROM t WHERE x + i > -3 OR w * x <= x GROUP BY x * 2 - p",
    "SELECT CAST(d AS TIMESTAMP), MAX(p) FROM t WHERE i > j GROUP BY CAST(d AS TIMESTAMP)",
]
SLOW = [
    "SELECT i, SUM(x) FROM t GROUP BY i",
    "SELECT SUM(w) FROM t",
    "SELECT SUM(p) FROM t WHERE LN(i) > 1",
    "SELECT COUNT(*) FROM t WHERE CAST(s AS BIGINT) > 1 OR x IN (1, 2)",
]
FIELDS = (
    compile_script(STREAM.format("") + "SELECT COUNT(*) FROM t;", "q.sql", lambda relation: ()).relations["t"].fields
)


def feeders(sql: str, op: bool) -> tuple[Feeder, Feeder]:
    """With programs, and without."""
    script = STREAM.format(", op 'op'" if op else "") + sql + ";"
    (query,) = compile_script(script, "q.sql", lambda relation: ()).queries
    plan = place(to_program(query).program, 1, {})
    fast, slow = Feeder(plan.feeds[0], 1), Feeder(plan.feeds[0], 1)
    for grouping in slow._groups:
        grouping._runners = [None, None]
    return fast, slow


def column(kind: Kind, nullable: bool, rows: int, draw: Random, far: int) -> Vec:
    """Values with NULLs, of which `far` in a hundred are near the ends of their types."""
    near = [*range(-3, 4), 10, 25, 40]
    match kind:
        case Kind.VARCHAR:
            values = pa.array([draw.choice(["", "a", "ab", "b", "é", "ébc"]) for _ in range(rows)])
        case Kind.BOOLEAN:
            values = np.array([draw.random() < 0.5 for _ in range(rows)])
        case Kind.DOUBLE:
            values = np.array([draw.choice([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan]) for _ in range(rows)])
        case _:
            first, last = -719_162, 2_932_896  # days: the years 1 to 9999
            ends = {
                Kind.BIGINT: [2**63 - 1, -(2**63) + 1, 2**62],
                Kind.DECIMAL: [10**29, 10**14 + 1],
                Kind.DATE: [first, last],
                Kind.TIMESTAMP: [first * 86_400_000_000, (last + 1) * 86_400_000_000 - 1],
            }.get(kind, [2**31 - 1])
            values = [draw.choice(ends) if draw.random() < far / 100 else draw.choice(near) for _ in range(rows)]
            wide = any(abs(v) >= 2**63 for v in values)
            values = np.array(values, object) if wide else np.array(values, np.int64)
    valid = np.array([draw.random() < 0.8 for _ in range(rows)]) if nullable else None
    return Vec(values, valid)


def batch(rows: int, draw: Random, op: bool, far: int) -> pa.RecordBatch:
    columns = {}
    for f in FIELDS:
        some = far if f.type.kind is not Kind.DECIMAL or f.type.precision > 18 else 0
        vec = column(f.type.kind, f.nullable, rows, draw, some)
        array = to_arrow(vec, f.type, rows)
        columns[f.name] = array.cast(pa.int64()) if arrow_type(f.type) == pa.int32() else array
    if op:
        columns["__mult"] = pa.array([draw.choice([-1, 1]) for _ in range(rows)], pa.int64())
    return pa.record_batch(columns).slice(rows // 7)  # NB: bits that do not begin with a byte


def outcome(feeder: Feeder, given: pa.RecordBatch | ExportedBatch) -> dict[str, list[tuple[Any, ...]]] | str:
    """What a feed makes of a batch, or what it raises."""
    names, table = Dictionary(), given.table if isinstance(given, ExportedBatch) else given
    try:
        out = [*feeder(given, names), *(delta for _, delta in feeder.ledger(table))]
    except SquallError as error:
        return str(error)
    found = {}
    for delta in out:
        keys = next((g._keys for g in feeder._groups if g.name == delta.name), ())  # none: it is a ledger's
        texts = [i for i, key in enumerate(keys) if key.type.kind is Kind.VARCHAR]
        rows = []
        for key, words in zip(delta.keys.tolist(), delta.words.tolist(), strict=True):
            for i in texts:
                key[i] = names.strings(np.array([key[i]]))[0].as_py()
            rows.append((*map(str, key), tuple(words)))
        found[delta.name] = sorted(rows)
    return found


@pytest.mark.parametrize("op", [False, True])
@pytest.mark.parametrize("sql", CODED + SLOW)
def differential_programs_and_vectors(sql: str, op: bool) -> None:
    fast, slow = feeders(sql, op)
    assert all((g._runners[op] is not None) == (sql in CODED) for g in fast._groups)
    for seed in range(12):
        table = batch((1, 30, 300, 1000)[seed % 4], Random(seed), op, far=seed % 3)
        assert outcome(fast, table) == outcome(slow, table), seed


@pytest.mark.parametrize("op", [False, True])
@pytest.mark.parametrize("sql", [*CODED[:6], SLOW[0]])
def differential_ranges_of_one_batch(sql: str, op: bool) -> None:
    """A batch is exported once, whichever of its rows are read, and perhaps itself a part of another one."""
    fast, other = feeders(sql, op)
    whole = batch(1200, Random(7), op, far=1).slice(100)
    rows = ExportedRange(ExportedBatch(whole))
    for start, count in ((0, 900), (0, 1), (37, 300), (899, 1), (13, 0), (450, 449)):
        rows.move(start, count)
        assert rows.rows == count
        if count:
            assert outcome(fast, rows) == outcome(other, whole.slice(start, count))


@pytest.mark.parametrize("sql", CODED)
def differential_programs_over_vectors(sql: str) -> None:
    fast, slow = feeders(sql, True)
    for seed in range(12):
        table = batch((1, 30, 300, 1000)[seed % 4], Random(seed), True, far=seed % 3)
        mult = np.asarray(table.column("__mult"))
        fields = {f.name: from_arrow(table.column(f.name), f.type) for f in FIELDS}
        found: list[Any] = []
        for grouping in (fast._groups[0], slow._groups[0]):
            try:
                out = grouping(len(table), fields.__getitem__, mult, Dictionary())
                found.append([m.tolist() for m in out])
            except SquallError as error:
                found.append(str(error))
        assert found[0] == found[1], seed


def oracle_a_program_answers_where_everything_has_room() -> None:
    fast, _ = feeders(CODED[0], False)
    (grouping,) = fast._groups
    taken = []
    vectors = grouping._evaluate
    grouping._evaluate = lambda *args: taken.append(1) or vectors(*args)
    outcome(fast, batch(300, Random(0), False, far=0))
    assert not taken
    table = batch(300, Random(0), False, far=0)
    huge = pa.array([10**17] * len(table), pa.decimal128(18, 0)).cast(pa.decimal128(38, 2))
    outcome(fast, table.set_column(table.schema.get_field_index("p"), "p", huge))
    assert taken


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def oracle_arrow_texts_of_another_kind(kind: pa.DataType) -> None:
    fast, slow = feeders("SELECT s, COUNT(*) FROM t WHERE s > 'a' AND u < 'c' GROUP BY s", False)
    table = batch(100, Random(1), False, far=0)
    schema = pa.schema([(f.name, kind if f.type == pa.string() else f.type) for f in table.schema])
    assert outcome(fast, table.cast(schema)) == outcome(slow, table.cast(schema)) == outcome(fast, table)
