"""The live table: a bag made of changes, in the order that the query asks for."""

import io
import re
import threading
from collections import Counter
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from squallpy.catalog.relation import Field, Relation
from squallpy.logical.bind import compile_script
from squallpy.logical.nodes import Query
from squallpy.runtime.observers.protocol import QueryStart
from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.terminal.live_table import Bag, Live, order_of, ordered
from tests.terminal.conftest import QUERY, STREAM

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
        came = [(k, s) for come, k, s in batch if come]
        there = naive + Counter[tuple[object, ...]](came)
        gone = [
            row
            for row, n in Counter((k, s) for come, k, s in batch if not come).items()
            for _ in range(min(n, there[row]))
        ]
        naive.update(came)
        naive.subtract(gone)
        bag.change(table(gone), table(came))
        if i % 2:
            bag.rows()
    assert Counter(rows_of(bag.rows())) == +naive


def drawn(select: str, batches: list[tuple[int, pa.Table, pa.Table, pa.Table]], width: int) -> list[str]:
    """The table as drawn last: of batches (number, deletes, inserts, the result)."""
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=width, height=20, color_system=None)
    live = Live(lambda: None, console)
    query = bind(select)
    live.begin(query, batches[0][1].schema, 9)
    for number, deletes, inserts, result in batches:
        live._due = 0.0
        live.on_query_started(QueryStart([query], 9, partial(tuple, [result])))
        live.batch(number, deletes, inserts)
        live.on_query_progress(BatchReport(number, total_tuples=50))
    live.close()
    frame = re.sub(r"\x1b\[\d*[A-Za-z]|\x1b\[\?25[hl]|\r", "", screen.getvalue()).rsplit("batch ", 1)[0]
    return frame.rstrip("\n").splitlines()


def result(**columns: list[object]) -> pa.Table:
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def test_a_run_that_goes_on_shows_the_whole_result() -> None:
    """Also of what changed before; and the first batch, which is in the result, is not added once more."""
    none, one, two = result(a=[1], b=[1]).slice(0, 0), result(a=[1], b=[10]), result(a=[2], b=[20])
    rows = drawn("SELECT a, b FROM r", [(4, none, two, pa.concat_tables([one, two]))], 60)
    assert [row.split() for row in rows[-2:]] == [["1", "10"], ["2", "20"]]
    rows = drawn("SELECT a, b FROM r", [(4, none, two, pa.concat_tables([one, two])), (5, one, none, two)], 60)
    assert [row.split() for row in rows[-2:]] == [["─", "──"], ["2", "20"]]
    rows = drawn("SELECT a, b FROM r", [(0, none, two, none)], 60)
    assert rows[-1].split() == ["2", "20"]


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


class Stopping(Live):
    """Ends the run after its first batch."""

    def __init__(self, stop: threading.Event, console: Console) -> None:
        super().__init__(lambda: None, console)
        self._stop = stop

    def on_query_progress(self, report: BatchReport) -> None:
        super().on_query_progress(report)
        self._stop.set()


@pytest.mark.parametrize("backend", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.cluster])])
@pytest.mark.parametrize("text", [QUERY, "SELECT user, day FROM clicks ORDER BY day LIMIT 9;"])
def test_a_table_after_each_of_several_runs_is_whole(room: Path, backend: str, text: str) -> None:
    """Each run does one batch, and leaves a checkpoint."""
    (room / "q.sql").write_text(STREAM + text)
    screen = io.StringIO()
    options = RunOptions(backend, batch_rows=1, changes=True, checkpoint=str(room / "kept"))
    for _ in range(3):
        stop = threading.Event()
        console = Console(file=screen, force_terminal=True, width=60, height=20, color_system=None)
        live = Stopping(stop, console)
        ScriptSession(room / "q.sql").run(options, live, stop, observer=live)
    captions = re.findall(r"batch (\d) of 3  1 tuples  (\d) rows", screen.getvalue())
    expected = ["1", "2", "2"] if text == QUERY else ["1", "2", "3"]
    assert list(dict(captions).items()) == list(zip("123", expected, strict=True))


def test_columns_without_room_are_counted() -> None:
    names = ["a", "b", *(f"x{i}" for i in range(12))]
    wide = pa.table({name: pa.array([10**12], pa.int64()) for name in names})
    screen = io.StringIO()
    live = Live(lambda: None, Console(file=screen, force_terminal=True, width=60, height=20, color_system=None))
    live.begin(bind(f"SELECT a, b, {', '.join(f'{i} AS x{i}' for i in range(12))} FROM r"), wide.schema, 1)
    live.batch(0, wide.slice(0, 0), wide)
    live.on_query_progress(BatchReport(0, total_tuples=1))
    live.close()
    assert "10 of 14 columns not shown: the terminal is too narrow" in screen.getvalue()


def test_the_table_is_drawn_cut_to_the_screen_and_erased() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=60, height=10, color_system=None)
    shown: list[bool] = []
    live = Live(lambda: shown.append(True), console)
    live.begin(bind("SELECT a, b FROM r ORDER BY a DESC"), pa.schema([("a", pa.int32()), ("b", pa.int32())]), 4)
    data = pa.table({"a": pa.array(range(50), pa.int32()), "b": pa.array([1] * 50, pa.int32())})
    live.batch(0, data.slice(0, 0), data)
    live.on_query_progress(BatchReport(0, total_tuples=50))
    live.close()
    text = screen.getvalue()
    assert shown == [True]
    assert "batch 1 of 4  50 tuples  50 rows" in text
    assert "49  1" in text and "45  1" in text and "44  1" not in text
    assert "\x1b[2K" in text.rsplit("rows", 1)[1]


def test_a_run_without_end_counts_its_batches() -> None:
    screen, query = io.StringIO(), bind("SELECT a FROM r")
    live = Live(lambda: None, Console(file=screen, force_terminal=True, width=60, height=20, color_system=None))
    live.begin(query, result(a=[1]).schema, None)
    live.batch(0, result(a=[1]).slice(0, 0), result(a=[1]))
    live.on_query_progress(BatchReport(0, total_tuples=5))
    live.close()
    assert "batch 1  5 tuples  1 rows" in screen.getvalue()
