"""Batches that are measured beside programs in Rust, and the columns that those read."""

from collections import defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.native.loop import Schedule, Times
from bench.native.peers.coded import ROWS, Codes
from bench.native.peers.report import Report
from bench.native.peers.systems import Run


def test_schedule_reads_each_row_once_and_measures_the_last_batches_of_each_size() -> None:
    sizes = {"orders": 50_003, "lineitem": 200_010}
    schedule = Schedule.of(sizes, [10, 1_000], most=30, share=0.1)
    ends = [schedule.bounds(batch)[1] for batch in range(schedule.batches)]
    starts = [schedule.bounds(batch)[0] for batch in range(schedule.batches)]
    assert ends[-1] == sizes and starts[1:] == ends[:-1] and set(starts[0].values()) == {0}
    assert {rows: sum(len(batches) for each, batches in schedule.pieces if each == rows) for rows in (10, 1_000)} == {
        10: 30,
        1_000: 25,
    }
    batches = [batch for _, piece in schedule.pieces for batch in piece]
    assert batches == [*range(schedule.batches - 55, schedule.batches)]


def test_columns_are_numbers_from_which_rows_are_read_back(tmp_path: Path) -> None:
    table = {
        "l_shipmode": ["SHIP", "MAIL", "SHIP"],
        "l_shipdate": [date(1995, 3, 15)] * 3,
        "l_tax": pa.array([Decimal("0.07"), Decimal("-1.00"), Decimal("0.00")], pa.decimal128(15, 2)),
        "l_orderkey": [1, 2, 2**31 - 1],
    }
    pq.write_table(pa.table(table), tmp_path / "lineitem.parquet")
    codes = Codes(tmp_path)
    codes.write("lineitem", table)
    words = {name: np.fromfile(codes.folder / f"{name}.i32", "<i4").tolist() for name in table}
    assert words == {
        "l_shipmode": [1, 0, 1],
        "l_shipdate": [19950315] * 3,
        "l_tax": [7, -100, 0],
        "l_orderkey": [1, 2, 2**31 - 1],
    }
    assert ROWS["q12"](codes, 1, 2, 3) == ("SHIP", 2, 3)


def test_systems_without_a_query_have_no_cells_and_the_plain_one_stands_in_for_them_in_means() -> None:
    microseconds = {
        ("q1", "squallpy"): 1, ("q1", "plain"): 8, ("q1", "summed"): 2,
        ("q3", "squallpy"): 1, ("q3", "plain"): 8,
    }  # fmt: skip
    runs = {
        (query, 100, system): [Run(Times(defaultdict(list, {100: [value / 1e6]})), 0, "equal")]
        for (query, system), value in microseconds.items()
    }
    names = {name: name for name in ("squallpy", "plain", "summed", "elsewhere")}
    text = Report(runs, names, {"summed": "plain"}).text(1, 0, 0)
    assert "| q1 | 100 | 100 (1) | 12.5 (8) | 8.00 (8.00) | 50 (2) | 2.00 (2.00) |  |  |" in text
    assert "| q3 | 100 | 100 (1) | 12.5 (8) | 8.00 (8.00) |  |  |  |  |" in text
    assert "| summed | 4.00 (4.00) |" in text and "| elsewhere |  |" in text
