"""Batches that are measured beside programs in Rust, and the columns that those read."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.native.loop import Schedule
from bench.native.peers.coded import ROWS, Codes


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
