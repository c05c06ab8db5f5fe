"""The live table: a bag made of changes, in the order that the query asks for."""

import io
from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from squallpy.catalog.relation import Field, Relation
from squallpy.logical.bind import compile_script
from squallpy.logical.nodes import Query
from squallpy.terminal.live import Bag, Live, order_of, ordered

SCHEMA = pa.schema([("k", pa.int64()), ("k", pa.string())])


def table(rows: list[tuple[int | None, str | None]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), ()]
    return pa.Table.from_arrays([pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA)


def rows_of(data: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*(column.to_pylist() for column in data.columns), strict=True))


def no_files(relation: Relation) -> tuple[Field, ...]:
    raise AssertionError(relation)


def bind(select: str) -> Query:
    stream = "CREATE STREAM r (a INT, b INT) USING csv OPTIONS (path 'r.csv'); "
    return compile_script(stream + select, "q.sql", no_files).queries[0]


@given(st.lists(st.lists(st.tuples(st.booleans(), st.none() | st.integers(0, 2), st.none() | st.sampled_from("ab")))))
def differential_bag_is_a_counter(batches: list[list[tuple[bool, int | None, str | None]]]) -> None:
    bag, naive = Bag(SCHEMA), Counter[tuple[object, ...]]()
    for i, batch in enumerate(batches):
        gone = [(k, s) for come, k, s in batch if not come]
        came = [(k, s) for come, k, s in batch if come]
        naive.update(came)
        naive.subtract(gone)
        bag.change(table(gone), table(came))
        if i % 2:
            bag.rows()
    assert Counter(rows_of(bag.rows())) == +naive


def test_order_is_that_of_the_query_as_far_as_it_is_printed() -> None:
    def order(select: str, columns: int = 2) -> list[tuple[int, str, str]]:
        return order_of(bind(select).plan, columns)

    up, down = ("ascending", "at_start"), ("descending", "at_end")
    rest = [(0, "ascending", "at_end")]
    assert order("SELECT a, b FROM r ORDER BY b DESC LIMIT 3") == [(1, *down), *rest]
    assert order("SELECT a, b FROM r ORDER BY b") == [(1, *up), *rest]
    assert order("SELECT a FROM r ORDER BY b, a", 1) == rest
    assert order("SELECT a AS x, b FROM r") == [*rest, (1, "ascending", "at_end")]
    assert order("SELECT a, SUM(b) AS s FROM r GROUP BY a ORDER BY s DESC LIMIT 1") == [(1, *down), *rest]


def test_nulls_go_where_the_order_puts_them() -> None:
    data = table([(1, "a"), (None, "b"), (2, "c")])
    assert [s for _, s in rows_of(ordered(data, [(0, "descending", "at_end")]))] == ["c", "a", "b"]
    assert [s for _, s in rows_of(ordered(data, [(0, "ascending", "at_start")]))] == ["b", "a", "c"]


def test_the_table_is_drawn_cut_to_the_screen_and_erased() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60, height=10, color_system=None)
    shown: list[bool] = []
    live = Live(lambda: shown.append(True), console)
    live.begin(bind("SELECT a, b FROM r ORDER BY a DESC"), pa.schema([("a", pa.int32()), ("b", pa.int32())]), 4)
    data = pa.table({"a": pa.array(range(50), pa.int32()), "b": pa.array([1] * 50, pa.int32())})
    live.batch(0, data.slice(0, 0), data, {"total_tuples": 50})
    live.close()
    text = screen.getvalue()
    assert shown == [True]
    assert "batch 1 of 4  50 tuples  50 rows" in text
    assert " 49 " in text and " 45 " in text and " 44 " not in text
    assert "\x1b[2K" in text.rsplit("rows", 1)[1]
