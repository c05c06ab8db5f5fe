"""Operation columns of change streams, in the words of the systems that write them."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.terminal.conftest import Ended, Squall

QUERY = "SELECT id, SUM(v) AS s, COUNT(*) AS n FROM t GROUP BY id ORDER BY id;\n"
FLINK = [("+I", 1, 10), ("-U", 1, 10), ("+U", 1, 11), ("+I", 2, 5), ("-D", 2, 5)]
DEBEZIUM = [("r", 1, 11), ("c", 2, 5), ("d", 2, 5)]
RISINGWAVE = [("Insert", 1, 10), ("UpdateDelete", 1, 10), ("UpdateInsert", 1, 11), ("Insert", 2, 5), ("Delete", 2, 5)]
DELTA = [("insert", 1, 10), ("update_preimage", 1, 10), ("update_postimage", 1, 11)]
MATERIALIZE = [(2, 1, 11), (1, 2, 5), (-1, 2, 5), (-1, 1, 11)]
SPARK = [("INSERT", 1, 10), ("UPDATE_BEFORE", 1, 10), ("UPDATE_AFTER", 1, 11)]


def run(squall: Squall, room: Path, rows: list, op: str, format: str, batch: int, options: str = "") -> Ended:
    ops, ids, values = zip(*rows, strict=True)
    if format == "parquet":
        pq.write_table(pa.table({op: ops, "id": ids, "v": values}), room / "t.parquet")
    else:
        (room / "t.csv").write_text(f"{op},id,v\n" + "".join(f"{o},{i},{v}\n" for o, i, v in rows))
        options += ", header 'true'"
    (room / "q.sql").write_text(
        f"CREATE STREAM t (id INT, v INT) USING {format} OPTIONS (path 't.{format}', op '{op}'{options});\n{QUERY}"
    )
    return squall("run", str(room / "q.sql"), "--backend", "local", "--batch-rows", str(batch), "--format", "csv")


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("rows", [FLINK, DEBEZIUM, RISINGWAVE, DELTA, MATERIALIZE, SPARK])
def test_operations_that_are_known(squall: Squall, tmp_path: Path, rows: list, format: str, batch: int) -> None:
    done = run(squall, tmp_path, rows, "mz_diff" if rows is MATERIALIZE else "op", format, batch)
    assert (done.status, done.out.splitlines()) == (0, ["id,s,n", "1,11,1"]), done.err


SUBSCRIBED = [
    (1, "true", None, None, None), (2, "false", 3, 1, 10), (2, "f", -2, 1, 10), (3, "T", None, None, None),
    (3, None, 1, 2, 5), (4, "false", -1, 2, 5), (4, "false", 1, 1, 1), (5, "true", None, None, None),
]  # fmt: skip


@pytest.mark.parametrize("batch", [1, 3, 100])
@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize(
    "columns", ["(id INT NOT NULL, v INT NOT NULL)", "", "(mz_progressed BOOLEAN, v INT, id INT, mz_timestamp BIGINT)"]
)
def test_progress_of_materialize_is_no_row(
    squall: Squall, tmp_path: Path, columns: str, format: str, batch: int
) -> None:
    """SUBSCRIBE … WITH (PROGRESS): where mz_progressed is true, all else but the time is NULL."""
    names = ("mz_timestamp", "MZ_Progressed", "mz_diff", "id", "v")
    if format == "parquet":
        told = dict(zip(names, map(list, zip(*SUBSCRIBED, strict=True)), strict=True))
        told["MZ_Progressed"] = [(text or "f").lower()[0] == "t" for text in told["MZ_Progressed"]]
        pq.write_table(pa.table(told), tmp_path / "t.parquet", row_group_size=3)
    else:
        text = "".join(",".join("" if cell is None else str(cell) for cell in line) + "\n" for line in SUBSCRIBED)
        (tmp_path / "t.csv").write_text(",".join(names) + "\n" + text)
    options = f"path 't.{format}', op 'mz_diff'" + (", header 'true'" if format == "csv" else "")
    stream = f"CREATE STREAM t {columns} USING {format} OPTIONS ({options});\n"
    selected = "id, v" if columns else "*"
    (tmp_path / "q.sql").write_text(f"{stream}SELECT {selected} FROM t;\n{QUERY}")
    command = ("run", str(tmp_path / "q.sql"), "--backend", "local", "--format", "csv", "--batch-rows", str(batch))
    done = squall(*command, "--checkpoint", str(tmp_path / "kept"))
    rows, groups = (part.split() for part in done.out.split("\n\n"))
    assert (done.status, done.err, sorted(rows), groups) == (0, "", ["1,1", "1,10", "id,v"], ["id,s,n", "1,11,2"])
    assert squall(*command, "--checkpoint", str(tmp_path / "kept")) == done


def test_progress_is_only_of_mz_diff(squall: Squall, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("mz_progressed,op,id,v\ntrue,+,1,10\n")
    options = "OPTIONS (path 't.csv', op 'op', header 'true')"
    (tmp_path / "q.sql").write_text(f"CREATE STREAM t (id INT, v INT) USING csv {options};\n{QUERY}")
    assert squall("run", str(tmp_path / "q.sql"), "--backend", "local").out == "id,s,n\n1,10,1\n"


@pytest.mark.parametrize("options", ["", ", on_error 'skip'"])
@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("op", "told"),
    [
        ("u", "'u' is an update in one row, write two: the old row with - or -U, the new one"),
        ("UPDATE", "'UPDATE' is an update"),
        ("upsert", "'upsert' is an update"),
        ("t", "'t' is neither an insert nor a delete"),
        ("2", "'2' is not an operation, write \\+ or -; multiplicities are read from a column called mz_diff"),
        ("0", "'0' is not an operation"),
        ("", "is NULL, which is not an operation|'' is neither"),
    ],
)  # fmt: skip
def test_an_unknown_operation_is_never_left_out(
    squall: Squall, tmp_path: Path, op: str, told: str, format: str, options: str
) -> None:
    done = run(squall, tmp_path, [("c", 1, 10), (op, 1, 11)], "op", format, 100, options)
    assert done.status == 2 and not done.out
    assert re.search(f'SQ4005 .*column "op".*({told})', done.err), done.err


def test_images_of_debezium_in_one_row(squall: Squall, tmp_path: Path) -> None:
    """An update with its images before and after is refused; where there is none, rows are counted without them."""
    image = [{"id": 1, "v": 10}, {"id": 1, "v": 11}, None]
    for ops, told in (("ccd", ""), ("cud", "SQ4005 t.parquet, row 2: column \"op\": 'u' is an update in one row")):
        table = pa.table({"op": list(ops), "before": [None, *image[::2]], "after": image})
        pq.write_table(table, tmp_path / "t.parquet")
        stream = "CREATE STREAM t USING parquet OPTIONS (path 't.parquet', op 'op');\n"
        (tmp_path / "q.sql").write_text(f"{stream}SELECT COUNT(*) AS n FROM t;")
        done = squall("run", str(tmp_path / "q.sql"), "--backend", "local")
        assert (done.out == "n\n1\n") is not bool(told) and done.err.startswith(told), done


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_new_rows_of_updates_without_the_old_ones(squall: Squall, tmp_path: Path, batch: int) -> None:
    """An upsert stream of Flink has +U alone: what it replaces is not there."""
    done = run(squall, tmp_path, [("+I", 1, 10), ("+U", 1, 11), ("+U", 1, 12)], "op", "csv", batch)
    assert (
        done.status == 2 and "SQ4005 t has new rows of updates (+U) before, or without, the old ones (-U)" in done.err
    )


def test_a_bad_value_is_left_out_and_a_bad_operation_is_not(squall: Squall, tmp_path: Path) -> None:
    rows = [("c", 1, 11), ("c", "x", 5), ("c", "y", 5)]
    done = run(squall, tmp_path, rows, "op", "csv", 100, ", on_error 'skip'")
    assert (done.status, done.out.splitlines()) == (0, ["id,s,n", "1,11,1"]), done.err
    done = run(squall, tmp_path, [*rows, ("?", "z", 5)], "op", "csv", 100, ", on_error 'skip'")
    assert done.status == 2 and "t.csv:5" in done.err


def test_operations_that_are_not_utf_8(squall: Squall, tmp_path: Path) -> None:
    run(squall, tmp_path, DEBEZIUM, "op", "csv", 100)
    (tmp_path / "t.csv").write_bytes(b"op,id,v\nc,1,11\n\xff,2,3\n")
    done = squall("run", str(tmp_path / "q.sql"), "--backend", "local")
    assert done.status == 2 and r"t.csv:3: column " in done.err and r"\\xff" in done.err


def test_a_misfit_row_is_left_out_with_its_operation(tmp_path: Path, squall: Squall) -> None:
    run(squall, tmp_path, DEBEZIUM, "op", "csv", 100, ", on_error 'skip'")
    (tmp_path / "t.csv").write_bytes(b"op,id,v\nc,1,11\nc,2\nc,2\xff\n")
    done = squall("run", str(tmp_path / "q.sql"), "--backend", "local", "--format", "csv")
    assert (done.status, done.out.splitlines()) == (0, ["id,s,n", "1,11,1"]), done.err
