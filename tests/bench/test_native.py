"""Batches that are measured beside programs in Rust, and the columns that those read."""

from collections import defaultdict
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.native import all_queries_report
from bench.native.all_queries import schedule_of
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


def test_all_queries_are_measured_in_the_last_tenth_of_their_streams() -> None:
    schedule = schedule_of({"facts": 3_000_000, "dimension": 300_000})
    sizes = [size for size, _ in schedule.pieces]
    assert sizes == sorted(sizes, reverse=True) and sum(b * size for size, b in schedule.measured.items()) <= 330_000
    assert schedule_of({"facts": 8_000_000}).measured == {
        100_000: 3, 10_000: 24, 1_000: 120, 100: 400, 10: 2_000, 1: 20_000,
    }  # fmt: skip
    small = schedule_of({"facts": 80_000})
    assert max(small.measured) == 10_000 and small.bounds(small.batches - 1)[1] == {"facts": 80_000}


def test_gains_are_those_over_the_better_peer_and_a_query_that_one_refuses_has_the_other() -> None:
    times = {str(rows): (10.0, 8.0) for rows in all_queries_report.SIZES}
    both = {"ms": 4.0, "version": ""}, {"ms": 2.0, "version": ""}
    results = {
        name: {
            "query": name,
            "scale": 1.0,
            "load": 0.5,
            "squallpy": {
                "compiled": times,
                "interpreted": dict.fromkeys(times, (40.0, 8.0)),
                "compiled answer": "equal",
                "interpreted answer": "equal",
                "state": 5_000_000,
            },
            "duckdb": {"1000": both[0], "10000": both[0]},
            "polars": {"1000": polars, "10000": polars},
        }
        for name, polars in (("q1", both[1]), ("ds3", {"refused": "SQLInterfaceError: no"}))
    }
    text = all_queries_report.text(results)
    assert "| q1 | 0.1 (4.00) | 1 (4.00) | 10 (4.00) | 100 (4.00) | 1,000 (4.00) | 10,000 (4.00) | 5 | equal |" in text
    assert "| q1 | 0.01 (0.008) | 4 | 2 | 200.0 (250.0) |" in text
    assert "| ds3 | 0.01 (0.008) | 4 | SQLInterfaceError | 400.0 (500.0) |" in text
    assert "| geometric mean |  |  |  | 282.8 (353.6) |" in text
