"""Hypothesis strategy: joins of two streams by a band, with and without equalities, over random inserts and deletes."""

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from squallpy.base.keys import HOLE
from squallpy.testing.generators import Case, batches, count_rows, insert_missing

SPREAD = 24  # values of a banded column: so many that ranges are cut, so few that they meet

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "INT": st.integers(0, SPREAD),
    "BIGINT": st.integers(0, SPREAD),
    "DECIMAL(8,2)": st.integers(0, 4 * SPREAD).map(lambda n: Decimal(n * 25).scaleb(-2)),
    "DOUBLE": st.one_of(st.integers(0, 4 * SPREAD).map(lambda n: n / 4), st.sampled_from([-0.0, 0.1, 1e300, -1e-300])),
    "DATE": st.integers(1, SPREAD).map(lambda day: f"2024-02-{day:02}"),
    "TIMESTAMP": st.integers(0, SPREAD).map(lambda minute: f"2024-02-29 23:{minute:02}:59.5"),
}
OF_NUMBERS = ("ABS({a} - {b}) <= 2", "{a} BETWEEN {b} - 1 AND {b} + 3", "{a} - {b} < 4 AND {b} - {a} <= 0")
BANDS: dict[str, tuple[str, ...]] = {
    "DATE": ("{a} BETWEEN {b} - INTERVAL '1' DAY AND {b} + INTERVAL '2' DAY", "ABS({a} - {b}) <= 1"),
    "TIMESTAMP": ("{a} BETWEEN {b} - INTERVAL '2' MINUTE AND {b}", "{a} BETWEEN {b} AND {b} + INTERVAL '90' SECOND"),
}
EQUALITIES = ("", "", " AND r.k = s.k", " AND r.w < s.w")
SELECTS = (
    "SELECT r.x AS a, s.y AS b, r.k AS c {tail}",
    "SELECT COUNT(*) AS n, SUM(s.k) AS t {tail}",
    "SELECT r.k AS k, COUNT(*) AS n, MIN(s.k) AS least {tail} GROUP BY r.k",
    "SELECT DISTINCT s.k AS k {tail}",
)


@st.composite
def band_join_cases(draw: st.DrawFn) -> Case:
    """Draw the type of what a band compares, perhaps an equality, and batches; then, perhaps, deletes of all."""
    kind = draw(st.sampled_from(list(VALUES)))
    keys, values = st.sampled_from([None, 0, 1, 2]), VALUES[kind]
    if kind == "BIGINT":
        least = draw(st.sampled_from([-9, 2**62, HOLE - SPREAD // 2]))
        values = values.map(lambda n: n + least).filter(lambda n: n != HOLE)
    row = st.tuples(keys, st.one_of(values, values, values, st.none()), keys)
    creates = [f"CREATE STREAM {name} (k INT, {of} {kind}, w INT);" for name, of in (("r", "x"), ("s", "y"))]
    band = draw(st.sampled_from(BANDS.get(kind, OF_NUMBERS))).format(a="r.x", b="s.y")
    tail = f"FROM r, s WHERE {band}{draw(st.sampled_from(EQUALITIES))}"
    query = draw(st.sampled_from(SELECTS)).format(tail=tail)
    rows = {name: draw(st.lists(row, min_size=12, max_size=30)) for name in "rs"}
    changes = draw(st.lists(batches(rows), min_size=3, max_size=6))
    insert_missing(changes, always=True)
    changes.insert(0, [(name, 1, each) for name in "rs" for each in rows[name]])
    changes += [[], [(name, 1, each) for name in "rs" for each in rows[name][::2]]]
    if draw(st.booleans()):
        changes.append([(name, -1, each) for (name, each), n in count_rows(changes).items() for _ in range(n)])
    return Case("\n".join([*creates, f"{query};"]), changes)
