"""Delimited text: values, quotes, NULLs, headers, rows at fault, random access."""

import datetime
import pickle
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.catalog.relation import Field, Relation
from squallpy.runtime.formats.csv import fits_precision
from squallpy.runtime.formats.skipped_rows import skipped
from squallpy.runtime.sources import infer_fields, open_source


def relation(fields: dict[str, Type], not_null: tuple[str, ...] = (), **options: str) -> Relation:
    columns = tuple(Field(name, type, name not in not_null) for name, type in fields.items())
    return Relation("r", columns, True, "csv", {"path": "r.csv", **options})


def read(folder: Path, text: str, fields: dict[str, Type], not_null: tuple[str, ...] = (), **options: str) -> pa.Table:
    (folder / "r.csv").write_text(text, newline="")
    source = open_source(relation(fields, not_null, **options), folder)
    return source.read(0, source.rows, tuple(fields))


def test_values_of_every_type(tmp_path: Path) -> None:
    fields = {
        "b": BOOLEAN,
        "i": INT,
        "n": BIGINT,
        "d": decimal(8, 2),
        "f": DOUBLE,
        "s": VARCHAR,
        "t": DATE,
        "u": TIMESTAMP,
    }
    text = (
        "true,1,-9223372036854775808,1.5,1e3,hé,2024-02-29,2024-02-29 01:02:03.000004\n"
        'F,+2, 7 ,+1.500,nan,"",2024-02-29,2024-02-29T00:00:00\n'
        ",,,,,,,\n"
    )
    table = read(tmp_path, text, fields)
    first, second, third = table.to_pylist()
    day = datetime.date(2024, 2, 29)
    assert first == {"b": True, "i": 1, "n": -(2**63), "d": Decimal("1.50"), "f": 1000.0, "s": "hé", "t": day,
                     "u": datetime.datetime(2024, 2, 29, 1, 2, 3, 4)}  # fmt: skip
    assert (second["b"], second["i"], second["n"], second["d"], second["s"]) == (False, 2, 7, Decimal("1.50"), "")
    assert set(third.values()) == {None}
    assert table.schema.types == [pa.bool_(), pa.int64(), pa.int64(), pa.decimal128(8, 2), pa.float64(), pa.string(),
                                  pa.date32(), pa.timestamp("us")]  # fmt: skip


def test_quotes_hold_delimiters_line_ends_and_doubled_quotes(tmp_path: Path) -> None:
    text = 'a;"x;y"\r\nb;"1\n2"\r\nc;"say ""hi"""\r\nd;5" pipe\r\n'
    table = read(tmp_path, text, {"k": VARCHAR, "v": VARCHAR}, delimiter=";")
    assert table["v"].to_pylist() == ["x;y", "1\n2", 'say "hi"', '5" pipe']


def test_escapes_and_other_quotes(tmp_path: Path) -> None:
    table = read(tmp_path, "'a\\'b',x\\,y\n", {"k": VARCHAR, "v": VARCHAR}, quote="'", escape="\\")
    assert table.to_pylist() == [{"k": "a'b", "v": "x,y"}]
    table = read(tmp_path, '"a,b"\n', {"k": VARCHAR, "v": VARCHAR}, quote="")
    assert table.to_pylist() == [{"k": '"a', "v": 'b"'}]


def test_the_text_that_means_null(tmp_path: Path) -> None:
    table = read(tmp_path, '\\N,\\N\n1,\n2,"\\N"\n', {"n": INT, "s": VARCHAR}, null="\\N")
    assert table.to_pylist() == [{"n": None, "s": None}, {"n": 1, "s": ""}, {"n": 2, "s": "\\N"}]


def test_a_quoted_empty_number_is_null(tmp_path: Path) -> None:
    table = read(tmp_path, '"1","a"\n"",""\n', {"n": INT, "s": VARCHAR})
    assert table.to_pylist() == [{"n": 1, "s": "a"}, {"n": None, "s": ""}]


def test_a_header_names_the_columns_in_any_order_and_case(tmp_path: Path) -> None:
    table = read(tmp_path, "x, B ,A\n1,2,3\n", {"a": INT, "b": INT}, header="true")
    assert table.to_pylist() == [{"a": 3, "b": 2}]


def test_tbl_rows_end_with_a_delimiter(tmp_path: Path) -> None:
    fields = {"n": INT, "s": VARCHAR}
    assert read(tmp_path, "1|a|\n2||\n", fields, delimiter="|").to_pylist() == [{"n": 1, "s": "a"}, {"n": 2, "s": None}]
    with pytest.raises(SquallError, match=r"SQ4003 .*r.csv:2: expected 2 fields, found 3"):
        read(tmp_path, "1|a|\n2|b|x\n", fields, delimiter="|")


@pytest.mark.parametrize(
    "text, message",
    [
        ("1,a\n\n2\n", 'SQ4003 .*r.csv:3: expected 2 fields, found 1: .2'),
        ("1,a\n2,b,c\n", 'SQ4003 .*r.csv:2: expected 2 fields, found 3: .2,b,c'),
        ('1,"a\nb"\nx,c\n', "SQ4004 .*r.csv:3: column \"n\": 'x' is not a valid INT"),
        ("1,a\n3000000000,b\n", "SQ4004 .*r.csv:2: column \"n\": '3000000000' is not a valid INT"),
        ("1,a\n1.5,b\n", "SQ4004 .*r.csv:2: column \"n\": '1.5' is not a valid INT"),
        ('1,a\n2,"b\n3,c\n', "SQ4003 .*r.csv"),
    ],
)  # fmt: skip
def test_a_row_at_fault_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SquallError, match=message):
        read(tmp_path, text, {"n": INT, "s": VARCHAR})


def test_what_cannot_be_cast_is_refused(tmp_path: Path) -> None:
    for type, text in (
        (INT, "0x1F"),
        (DOUBLE, "-nan"),
        (DOUBLE, "1_0"),
        (decimal(4, 2), "100"),
        (decimal(4, 2), "1e-99999999999"),
        (DATE, "2024-02-30"),
        (DATE, "0000-01-01"),
        (TIMESTAMP, "2024-01-01T00:00Z"),
        (TIMESTAMP, "0000-01-01 00:00:00"),
    ):
        with pytest.raises(SquallError, match=r"SQ4004 .* is not a valid"):
            read(tmp_path, f"{text}\n", {"a": type})


def test_fields_are_cast_as_texts_are(tmp_path: Path) -> None:
    text = "1.005,2024-1-2T25:00,2024-01-02T03:04:05+02:00,Y\n1e-99999,2024,2024-01-02 03:04:05.123456789,no\n"
    table = read(tmp_path, text, {"d": decimal(6, 2), "t": DATE, "u": TIMESTAMP, "b": BOOLEAN})
    first, second = table.to_pylist()
    day = datetime.date(2024, 1, 2)
    assert first == {"d": Decimal("1.01"), "t": day, "u": datetime.datetime(2024, 1, 2, 1, 4, 5), "b": True}
    moment = datetime.datetime(2024, 1, 2, 3, 4, 5, 123456)
    assert second == {"d": Decimal("0.00"), "t": datetime.date(2024, 1, 1), "u": moment, "b": False}


def test_a_column_with_what_is_no_number_is_inferred_as_text(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("a,b,c\n1,0x1F,2024-01-02T03:04:05Z\n2,7,2024-01-02T03:04:05+02:00\n")
    found = infer_fields(relation({}, header="true"), tmp_path)
    assert [field.type for field in found] == [BIGINT, VARCHAR, TIMESTAMP]


def test_the_widest_decimals_fit(tmp_path: Path) -> None:
    """Python's decimals round to 28 digits unless told otherwise, and the parser does not look at the precision."""
    most = 10**38 - 1
    assert fits_precision(pa.chunked_array([pa.array([Decimal(-most), None, Decimal(most)], pa.decimal128(38, 0))]))
    table = read(tmp_path, f"{most}\n-{most}\n", {"d": decimal(38, 0)})
    assert table["d"].to_pylist() == [Decimal(most), Decimal(-most)]


def test_null_in_a_column_that_is_not_null(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r'SQ4006 .*r.csv:2: column "n" is NULL'):
        read(tmp_path, "1,a\n,b\n", {"n": INT, "s": VARCHAR}, ("n",))


def test_rows_at_fault_are_left_out_and_counted(tmp_path: Path) -> None:
    text = "n,s\n1,a\nx,b\n2\n\n3,c\n,d\n"
    table = read(tmp_path, text, {"n": INT, "s": VARCHAR}, ("n",), header="true", on_error="skip")
    assert table["n"].to_pylist() == [1, 3]
    left_out = skipped(table)
    assert left_out.count == 3
    assert [e.partition("r.csv:")[2].partition(":")[0] for e in left_out.examples] == ["3", "4", "7"]


def test_change_streams(tmp_path: Path) -> None:
    ops = ["+", "-", "I", "d", "C", "1", "-1", "insert", "DELETE"]
    text = "op,n\n" + "".join(f"{op},{i}\n" for i, op in enumerate(ops))
    table = read(tmp_path, text, {"n": INT}, header="true", op="op")
    assert table.column_names == ["n", "__mult"]
    assert table["__mult"].to_pylist() == [1, -1, 1, -1, 1, 1, -1, 1, -1]
    with pytest.raises(SquallError, match=r"SQ4005 .*r.csv:3: column .op.: 'u' is an update"):
        read(tmp_path, "op,n\n+,1\nu,2\n", {"n": INT}, header="true", op="op")
    with pytest.raises(SquallError, match=r"SQ4005 .*r.csv:3: column .op.: 'u' is an update"):
        read(tmp_path, "op,n\n+,1\nu,2\n", {"n": INT}, header="true", op="op", on_error="skip")


def test_the_operation_without_a_header_is_first_or_where_its_name_says(tmp_path: Path) -> None:
    assert read(tmp_path, "+,7\n-,8\n", {"n": INT}, op="o").to_pylist() == [
        {"n": 7, "__mult": 1},
        {"n": 8, "__mult": -1},
    ]
    assert read(tmp_path, "7,-\n", {"n": INT}, op="c1").to_pylist() == [{"n": 7, "__mult": -1}]


def test_any_range_of_rows(tmp_path: Path) -> None:
    rows = 20_000
    text = "".join(f'{i},"{"x" * (i % 7)}\n{i}"\n' for i in range(rows))
    (tmp_path / "r.csv").write_text(text)
    source = pickle.loads(pickle.dumps(open_source(relation({"n": INT, "s": VARCHAR}), tmp_path)))
    assert source.rows == rows
    for start, stop in ((0, 1), (4095, 4097), (5000, 13_000), (19_999, 20_000), (8192, 12_288), (7, 7)):
        table = source.read(start, stop, ("n",))
        assert table["n"].to_pylist() == list(range(start, stop))
        assert source.read(start, stop, ()).num_rows == stop - start


def test_a_large_range_is_parsed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from squallpy.runtime.formats import indexed_text

    monkeypatch.setattr(indexed_text, "PIECE", 100)
    text = "".join(f"{i}\n" for i in range(500)) + "x\n"
    table = read(tmp_path, text, {"n": INT}, on_error="skip")
    assert table["n"].to_pylist() == list(range(500))
    assert skipped(table).examples[0].endswith("r.csv:501: column \"n\": 'x' is not a valid INT")


def test_folders_and_globs_are_one_source(tmp_path: Path) -> None:
    for name, text in (("b", "n\n3\n"), ("a", "n\n1\n2\n"), ("c", "")):
        (tmp_path / f"{name}.csv").write_text(text)
    (tmp_path / "_SUCCESS").write_text("")
    for path in ("*.csv", "."):
        source = open_source(relation({"n": INT}, path=path, header="true"), tmp_path)
        assert source.read(0, source.rows, ("n",))["n"].to_pylist() == [1, 2, 3]
        assert source.read(1, 3, ()).num_rows == 2


def test_texts_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes("1,café\n2,tea\n".encode("latin-1"))
    fields: dict[str, Type] = {"n": INT, "s": VARCHAR}
    with pytest.raises(SquallError, match=r'SQ4004 .*r.csv:1: column "s": .* is not a valid VARCHAR'):
        open_source(relation(fields), tmp_path).read(0, 2, ("n", "s"))
    table = open_source(relation(fields, on_error="skip"), tmp_path).read(0, 2, ("n", "s"))
    assert table.to_pylist() == [{"n": 2, "s": "tea"}] and skipped(table).count == 1


def test_rows_of_megabytes(tmp_path: Path) -> None:
    """Wherever they are: the first one is also counted by its fields."""
    text = "é" * 2_000_000
    fields = {"n": INT, "s": VARCHAR}
    for rows in ([(1, text), (2, ""), (3, text)], [(1, "a"), (2, text)]):
        lines = "".join(f"{n},{s}\n" for n, s in rows)
        for header in ("", "n,s\n"):
            table = read(tmp_path, header + lines, fields, header=str(bool(header)).lower(), null="NULL")
            assert table.to_pylist() == [{"n": n, "s": s} for n, s in rows]
    assert [f.name for f in infer_fields(relation({}, header="true"), tmp_path)] == ["n", "s"]


def test_a_parquet_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes(b"PAR1\x15\x04\x15")
    with pytest.raises(SquallError, match=r"SQ4003 .*r.csv is a parquet file, write USING parquet"):
        open_source(relation({"n": INT, "m": INT}, quote="\x15"), tmp_path)


def test_empty_files_are_empty_streams(tmp_path: Path) -> None:
    assert read(tmp_path, "", {"n": INT}, header="true").num_rows == 0
    assert read(tmp_path, "n\n", {"n": INT}, header="true").num_rows == 0


def test_missing_files_and_columns(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r'SQ4001 no file "r.csv", put it into .* or change OPTIONS'):
        open_source(relation({"n": INT}), tmp_path)
    (tmp_path / "rr.csv").touch()
    with pytest.raises(SquallError, match=r'SQ4001 no file "r.csv", did you mean "rr.csv"'):
        open_source(relation({"n": INT}), tmp_path)
    with pytest.raises(SquallError, match=r'no file "\.\./.*/r.csv", did you mean "\.\./.*/rr.csv"'):
        open_source(relation({"n": INT}, path=f"../{tmp_path.name}/r.csv"), tmp_path)
    (tmp_path / "rr.csv").unlink()
    with pytest.raises(SquallError, match=r'SQ4001 cannot read "x+": file name too long'):
        open_source(relation({"n": INT}, path="x" * 5000), tmp_path)
    with pytest.raises(SquallError, match=r'SQ4002 .*r.csv has no column "price", did you mean "prize"'):
        read(tmp_path, "prize\n1\n", {"price": INT}, header="true")
    with pytest.raises(SquallError, match=r"SQ7002"):
        read(tmp_path, "1\n", {"n": INT}, delimiter="||")


def test_columns_that_are_not_declared(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(
        "op,n,d,s,t,u,z,big\n+,1,1.5,x,2024-01-01,2024-01-01 00:00:00,,99999999999999999999\n"
    )
    types = {f.name: f.type for f in infer_fields(relation({}, header="true", op="op"), tmp_path)}
    assert types == {
        "n": BIGINT,
        "d": DOUBLE,
        "s": VARCHAR,
        "t": DATE,
        "u": TIMESTAMP,
        "z": VARCHAR,
        "big": decimal(38, 0),
    }
    (tmp_path / "r.csv").write_text("1|a|\n2|b|\n")
    assert [(f.name, f.type) for f in infer_fields(relation({}, delimiter="|"), tmp_path)] == [
        ("c0", BIGINT),
        ("c1", VARCHAR),
    ]
