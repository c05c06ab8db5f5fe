"""Columns that a terminal has room for: keys and measures stay, texts are cut, numbers never."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from squallpy.logical.bind import compile_script
from squallpy.terminal.fit_columns import fit, rank_columns
from squallpy.terminal.live_table import order_by
from squallpy.terminal.text_table import table_text
from tests.terminal.test_live_table import no_files

CUSTOMERS = """
CREATE STREAM c (k INT, name VARCHAR, phone VARCHAR, address VARCHAR, remark VARCHAR, paid DECIMAL(12,2))
USING csv OPTIONS (path 'c.csv');
"""


def ranked(select: str) -> list[str]:
    query = compile_script(CUSTOMERS + select, "q.sql", no_files).queries[0]
    kinds = [pa.string() if "VARCHAR" in str(column.type) else pa.int64() for column in query.plan.output]
    schema = pa.schema(list(zip(query.names, kinds, strict=True)))
    return [query.names[i] for i in rank_columns(query.plan, schema, [i for i, _, _ in order_by(query.plan)])]


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        ("SELECT k, name, phone, SUM(paid) AS s, COUNT(*) AS n FROM c GROUP BY k, name, phone", "k s name n phone"),
        ("SELECT k, SUM(paid) AS s, COUNT(*) AS n FROM c GROUP BY k ORDER BY n DESC LIMIT 3", "k n s"),
        ("SELECT name, phone, SUM(paid) AS s FROM c GROUP BY name, phone ORDER BY phone", "phone s name"),
        ("SELECT 1 AS one, UPPER(name) AS u, 1 + SUM(paid) AS s FROM c GROUP BY name", "u s one"),
        ("SELECT x.k, x.s * 2 AS t FROM (SELECT k, SUM(paid) AS s FROM c GROUP BY k) x", "k t"),
        ("SELECT phone, name, k, paid FROM c", "phone k name paid"),
        ("SELECT DISTINCT name, k FROM c", "name k"),
        ("SELECT COUNT(*) AS n FROM c", "n"),
    ],
)
def golden_ranks(select: str, expected: str) -> None:
    assert ranked(select) == expected.split()


def lines(table: pa.Table, width: int) -> list[str]:
    return b"".join(table_text(fit(table, width, range(table.num_columns)))).decode().splitlines()


WIDE = pa.table(
    {
        "k": [1, 22],
        "name": ["a name that is rather long", "b"],
        "total": pa.array([100, 123456789012], pa.int64()),
        "remark": ["words and words and words", None],
    }
)


def golden_texts_are_cut_before_columns_are_left_out() -> None:
    assert lines(WIDE, 80) == b"".join(table_text(WIDE)).decode().splitlines()
    assert lines(WIDE, 44) == [
        " k  name                 total  remark",
        "──  ────────────  ────────────  ────────────",
        " 1  a name that…           100  words and w…",
        "22  b             123456789012  NULL",
    ]
    assert lines(WIDE, 29) == [
        " k  name                total",
        "──  ───────────  ────────────",
        " 1  a name tha…           100",
        "22  b            123456789012",
    ]
    assert lines(WIDE, 5)[0].split() == ["k"]


texts = st.text(st.characters(codec="utf-8"), max_size=40)


@given(
    st.lists(st.tuples(texts, texts, st.integers(-(2**63), 2**63 - 1), texts), max_size=3),
    st.lists(texts, min_size=4, max_size=4),
    st.integers(22, 90),
    st.permutations(range(4)),
)
def property_rows_fit_and_numbers_are_whole(
    rows: list[tuple[object, ...]], names: list[str], width: int, order: list[int]
) -> None:
    kinds = [pa.string(), pa.string(), pa.int64(), pa.string()]
    columns = list(zip(*rows, strict=True)) or [()] * 4
    table = pa.Table.from_arrays([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=names)
    fitted = fit(table, width, order)
    assert fitted.num_columns >= 1
    for line in b"".join(table_text(fitted)).decode().removesuffix("\n").split("\n"):
        assert cell_len(line) <= width
    for column in fitted.columns:
        if pa.types.is_integer(column.type):
            assert column.to_pylist() == list(columns[2])
