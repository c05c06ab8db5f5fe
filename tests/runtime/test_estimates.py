"""`estimate`: bounds of what all rows will give, by those of a random order that were read, against NumPy."""

from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import squallpy

STREAMS = """
CREATE STREAM r (id INT PRIMARY KEY, g VARCHAR, x DOUBLE)
    USING parquet OPTIONS (path '{room}/r.parquet', order 'random', seed '3');
CREATE STREAM s (id BIGINT PRIMARY KEY, r INT, y DECIMAL(8,2))
    USING parquet OPTIONS (path '{room}/s.parquet', order 'random');
CREATE TABLE names (g VARCHAR, long VARCHAR) USING parquet OPTIONS (path '{room}/names.parquet');
CREATE MATERIALIZED VIEW read_r AS SELECT id FROM r;
CREATE MATERIALIZED VIEW read_s AS SELECT id FROM s;
"""
Z = NormalDist().inv_cdf(0.975)
Rows = list[dict[str, Any]]


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Three groups of r, one of whom is NULL, with values that are NULL, and two rows of s for each on average."""
    draw = np.random.default_rng(5)
    x = [None if draw.random() < 0.1 else round(draw.exponential(10), 2) for _ in range(120)]
    g = draw.choice(np.array(["a", "b", None]), 120).tolist()
    pq.write_table(pa.table({"id": pa.array(range(120), pa.int32()), "g": g, "x": x}), tmp_path / "r.parquet")
    y = pa.array(draw.integers(0, 9, 240).astype(str)).cast(pa.decimal128(8, 2))
    keys = pa.array(draw.integers(0, 130, 240).astype(np.int32))
    pq.write_table(pa.table({"id": pa.array(range(240)), "r": keys, "y": y}), tmp_path / "s.parquet")
    pq.write_table(pa.table({"g": ["a", "a", "b"], "long": ["ah", "oh", "be"]}), tmp_path / "names.parquet")
    return tmp_path


def batches(room: Path, query: str, rows: int = 40, backend: str = "local") -> Iterator[tuple[Rows, Rows, Rows]]:
    """Run a query in a session; yield after every batch its result, and the rows of r and s that were read."""
    tables = [pq.read_table(room / f"{name}.parquet").to_pylist() for name in "rs"]
    with squallpy.connect(backend, settings={"batch_rows": rows}) as session:
        session.sql(STREAMS.format(room=room))
        session.sql(f"CREATE MATERIALIZED VIEW found AS {query}")
        while session.step() is not None:
            read = [{row["id"] for row in session.view(f"read_{name}").to_pylist()} for name in "rs"]
            r, s = ([row for row in table if row["id"] in ids] for table, ids in zip(tables, read, strict=True))
            yield session.view("found").to_pylist(), r, s


def bounds(kind: str, contributions: list[tuple[np.ndarray, np.ndarray, int]]) -> tuple[float, float]:
    """Estimate from scratch: for each stream, what each row that was read adds to sum and count, and its size."""
    scale = np.prod([size / len(sums) for sums, _, size in contributions])
    (sums, counts, _), *_ = contributions
    total, count, variance = sums.sum(), counts.sum(), 0.0
    for sums, counts, size in contributions:
        each = sums - total / count * counts if kind == "AVG" else counts if kind == "COUNT" else sums
        # NB: the sum over all is the size times the mean, whose variance is that of n rows without replacement
        variance += len(each) * np.var(each, ddof=1) * (1 - len(each) / size)
    if kind == "AVG":
        return total / count, Z * variance**0.5 / count
    return scale * (count if kind == "COUNT" else total), Z * scale * variance**0.5


def check(row: dict[str, Any], name: str, expected: tuple[float, float]) -> None:
    value, half = expected
    found = row[name], row[f"{name}_low"], row[f"{name}_high"]
    assert np.allclose(found, (value, value - half, value + half), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("key", ["G", "`g`", "r.g", "R.`G`", "1"])
def differential_spellings_of_a_key(room: Path, key: str) -> None:
    query = "SELECT * FROM estimate(TABLE(SELECT {} AS k, AVG(x) AS mean FROM r JOIN s ON r.id = s.r GROUP BY {}))"
    plain, spelled = ([found for found, _, _ in batches(room, query.format("g", by))] for by in ("g", key))
    assert plain == spelled
    assert key == "1" or plain == [found for found, _, _ in batches(room, query.format(key, "G"))]


def oracle_groups_of_a_stream(room: Path) -> None:
    query = "SELECT g, SUM(x) AS total, COUNT(*) AS n, COUNT(x), AVG(x) AS mean FROM r WHERE id <> 7 GROUP BY g"
    seen = 0
    for found, r, _ in batches(room, f"SELECT * FROM estimate(TABLE({query}))"):
        assert {row["g"] for row in found} == {row["g"] for row in r}
        for row in found:
            mine = [each["g"] == row["g"] and each["id"] != 7 for each in r]
            values = np.array(
                [each["x"] if ok and each["x"] is not None else 0.0 for each, ok in zip(r, mine, strict=True)]
            )
            filled = np.array([float(ok and each["x"] is not None) for each, ok in zip(r, mine, strict=True)])
            check(row, "total", bounds("SUM", [(values, filled, 120)]))
            check(row, "n", bounds("COUNT", [(values, np.array(mine, float), 120)]))
            check(row, "count(x)", bounds("COUNT", [(values, filled, 120)]))
            check(row, "mean", bounds("AVG", [(values, filled, 120)]))
            seen += 1
    assert seen >= 9 and all(row["total_low"] == row["total"] == row["total_high"] for row in found)


def ripple(r: Rows, s: Rows, names: Rows, key: str | None) -> list[tuple[np.ndarray, np.ndarray, int]]:
    """What each row of r, and of s, adds to SUM(x * y) and COUNT(x * y) of a group of the join."""
    sums = {name: np.zeros(size) for name, size in (("r", 120), ("s", 240))}
    counts = {name: np.zeros(size) for name, size in (("r", 120), ("s", 240))}
    for a in r:
        for b in s:
            long = [n for n in names if n["g"] == a["g"] and n["long"] == key]
            if a["id"] == b["r"] and long and a["x"] is not None:
                for name, row in (("r", a), ("s", b)):
                    sums[name][row["id"]] += a["x"] * float(b["y"])
                    counts[name][row["id"]] += 1
    read = {"r": [a["id"] for a in r], "s": [b["id"] for b in s]}
    return [(sums[name][read[name]], counts[name][read[name]], size) for name, size in (("r", 120), ("s", 240))]


JOIN = """SELECT long, SUM(x * y) AS total, AVG(x * y) AS mean, COUNT(x * y) AS n
    FROM r JOIN s ON r.id = s.r, names WHERE names.g = r.g GROUP BY 1"""


@pytest.mark.parametrize("backend", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def oracle_ripple_join(room: Path, backend: str, request: pytest.FixtureRequest) -> None:
    if backend == "spark":
        request.getfixturevalue("cluster")
    names = pq.read_table(room / "names.parquet").to_pylist()
    seen = 0
    for found, r, s in batches(room, f"SELECT * FROM Estimate(TABLE({JOIN}))", 90, backend):
        for row in found:
            each = ripple(r, s, names, row["long"])
            for name, kind in (("total", "SUM"), ("mean", "AVG"), ("n", "COUNT")):
                check(row, name, bounds(kind, each))
            seen += 1
    assert seen >= 9 and all(row["mean_low"] == row["mean"] == row["mean_high"] for row in found)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
@pytest.mark.parametrize("is_joined", [False, True])
def property_bounds_hold_as_often_as_they_say(tmp_path: Path, is_joined: bool, confidence: float) -> None:
    """Of many groups, which are repetitions of one experiment, and ever closer; a join has few pairs at first."""
    draw, groups, size = np.random.default_rng(11), 80 if is_joined else 400, 40_000
    g = draw.integers(0, groups, size).astype(np.int32)
    r = pa.table({"id": pa.array(range(size), pa.int32()), "g": g, "x": draw.exponential(10, size)})
    key = draw.integers(0, size, size).astype(np.int32)
    pq.write_table(r, tmp_path / "r.parquet")
    pq.write_table(pa.table({"id": pa.array(range(size)), "r": key, "y": draw.random(size)}), tmp_path / "s.parquet")
    x = r["x"].to_numpy()
    truth = np.bincount(g[key] if is_joined else g, x[key] if is_joined else x, groups)
    source = "r JOIN s ON r.id = s.r" if is_joined else "r"
    widths = list[float]()
    with squallpy.connect(settings={"batch_rows": size * (1 + is_joined) // 4}) as session:
        for name, rest in (("r", "g INT, x DOUBLE"), ("s", "r INT, y DOUBLE")):
            options = f"path '{tmp_path}/{name}.parquet', order 'random'"
            session.sql(f"CREATE STREAM {name} (id INT PRIMARY KEY, {rest}) USING parquet OPTIONS ({options})")
        of = f"TABLE(SELECT g, SUM(x) AS t FROM {source} GROUP BY g), confidence => {confidence}"
        session.sql(f"CREATE MATERIALIZED VIEW found AS SELECT * FROM estimate({of})")
        while session.step() is not None and len(widths) < 3:
            rows = session.view("found").to_pylist()
            hold = np.mean([row["t_low"] <= truth[row["g"]] <= row["t_high"] for row in rows])
            assert len(rows) == groups and abs(hold - confidence) < 0.06, (len(widths), hold)
            widths.append(np.mean([row["t_high"] - row["t_low"] for row in rows]))
    assert widths == sorted(widths, reverse=True) and len(widths) == 3


def test_one_row_tells_no_bounds_and_none_nothing(room: Path) -> None:
    query = "SELECT SUM(x) AS t, COUNT(*) AS n FROM r WHERE id >= 0"
    results = batches(room, f"SELECT * FROM estimate(TABLE({query}), confidence => 0.5)", rows=3)
    found, r, _ = next(results)
    assert len(r) == 1 and found[0]["n"] == 120.0 and found[0]["n_low"] is None


def test_the_number_of_rows_is_no_table_that_anyone_sees(room: Path) -> None:
    with squallpy.connect() as session:
        session.sql(STREAMS.format(room=room))
        session.sql("CREATE MATERIALIZED VIEW e AS SELECT * FROM estimate(TABLE(SELECT COUNT(*) AS n FROM r))")
        assert [row["name"] for row in session.query("SHOW TABLES").to_pylist()] == ["names"]
