"""Envelopes of Debezium: whatever a table went through, its rows; and envelopes at fault by name."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, INT, VARCHAR
from squallpy.catalog.relation import MULT, TRUNCATED, Field, Relation
from squallpy.runtime.formats.debezium import Envelopes
from squallpy.runtime.formats.json_reader import _parse_alike, _parse_lines
from squallpy.runtime.formats.skipped_rows import skipped
from squallpy.runtime.sources.source import FileSource, open_source

FIELDS = (Field("id", BIGINT, False), Field("s", VARCHAR, False), Field("v", INT))
Row = dict[str, Any]


def opened(path: Path, *lines: Any, key: tuple[str, ...] = (), **options: str) -> FileSource:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts))
    kept = {"path": str(path), "changelog": "debezium"} | options
    return open_source(Relation("r", FIELDS, True, "json", kept, key), path.parent)


def read(source: FileSource, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in source.read(0, source.rows, columns or ("id", "s", "v")).to_pylist()]


def envelope(op: str, before: Row | None = None, after: Row | None = None) -> Row:
    return {"before": before, "after": after, "source": {"table": "t"}, "op": op, "ts_ms": 1}


A, B = {"id": 1, "s": "a", "v": 5}, {"id": 1, "s": "b", "v": None}


@pytest.mark.parametrize("slow", ["", "1"])  # with a text for a number, lines are parsed one by one
def test_images_are_rows(tmp_path: Path, slow: str) -> None:
    wrapped = {"schema": {"type": "struct"}, "payload": envelope("r", None, {"id": 2, "s": "c", "v": slow or 1})}
    changes = [envelope("c", None, A), wrapped, envelope("u", A, B), "null", envelope("d", B)]
    source = opened(tmp_path / "r.json", *changes)
    rows = [(1, "a", 5, 1), (2, "c", 1, 1), (1, "a", 5, -1), (1, "b", None, 1), (1, "b", None, -1)]
    assert read(source) == rows
    assert skipped(source.read(0, 5, ("id",))).count == 0
    assert read(source, "v") == [row[2:] for row in rows]
    assert source.read(0, 0, ("v",)).column_names == ["v", MULT]


def test_by_a_key_an_update_is_one_row(tmp_path: Path) -> None:
    """With REPLICA IDENTITY DEFAULT there is no old row, or only its key."""
    changes = [envelope("c", None, A), envelope("u", None, B), envelope("d", {"id": 1, "s": None}), "null"]
    assert read(opened(tmp_path / "r.json", *changes, key=("id",))) == [
        (1, "a", 5, 1), (1, "b", None, 1), (1, None, None, -1),
    ]  # fmt: skip


def test_an_update_may_move_a_row_to_another_key(tmp_path: Path) -> None:
    source = opened(tmp_path / "r.json", envelope("u", A, A | {"id": 2}), envelope("u", A, A), key=("id",))
    assert read(source) == [(1, None, None, -1), (2, "a", 5, 1), (1, "a", 5, 1)]


def test_by_a_key_a_truncation_is_a_row(tmp_path: Path) -> None:
    """What it deletes is known by the state."""
    changes = [envelope("c", None, A), envelope("t"), {"payload": envelope("t")}, envelope("c", None, B)]
    gone = (None, None, None, TRUNCATED)
    assert read(opened(tmp_path / "r.json", *changes, key=("id",))) == [(1, "a", 5, 1), gone, gone, (1, "b", None, 1)]


@pytest.mark.parametrize(
    ("line", "key", "problem"),
    [
        (envelope("u", None, A), "", "SQ4005 .*:2: op 'u' needs before, which is null.*PRIMARY KEY, or .*FULL"),
        (envelope("d", None), "", "SQ4005 .*:2: op 'd' needs before, which is null"),
        (envelope("d", None), "id", "SQ4005 .*:2: op 'd' needs before, which is null"),
        (envelope("c", A), "", "SQ4005 .*:2: op 'c' needs after, which is null"),
        (envelope("u", A), "", "SQ4005 .*:2: op 'u' needs after, which is null"),
        (envelope("t"), "", "SQ4005 .*:2: the table was truncated .*, and no row is named, declare a PRIMARY KEY"),
        (envelope("x", A, A), "", "SQ4005 .*:2: op 'x' is none of c, r, u and d"),
        ({"id": 1}, "", "SQ4005 .*:2: op NULL is none of c, r, u and d"),
        (envelope("c", None, {"id": 1}), "", 'SQ4006 .*:2: column "s" is NULL, declared NOT NULL'),
        (envelope("d", {"s": "a"}), "id", 'SQ4006 .*:2: column "id" is NULL, declared NOT NULL'),
        (envelope("d", {"id": 1}), "", 'SQ4006 .*:2: column "s" is NULL, declared NOT NULL'),
        (envelope("c", None, {"id": "x", "s": ""}), "", "SQ4004 .*:2: column \"id\": 'x' is not a valid BIGINT"),
        ("[1]", "", "SQ4003 .*:2: '.1.' is not a JSON object"),
        ("{", "", "SQ4003 .*:2: '{' is not JSON"),
    ],
)
def fault_envelopes(tmp_path: Path, line: Any, key: str, problem: str) -> None:
    """Those with a hint end the query also under on_error 'skip', which leaves out the others."""
    lines, by = (envelope("c", None, A), line, envelope("c", None, A)), (key,) if key else ()
    with pytest.raises(SquallError, match=problem) as error:
        read(opened(tmp_path / "r.json", *lines, key=by))
    source = opened(tmp_path / "r.json", *lines, key=by, on_error="skip")
    if error.value.hint.startswith("OPTIONS"):
        assert read(source) == [(1, "a", 5, 1)] * 2 and skipped(source.read(0, 3, ("id", "s"))).count == 1
    else:
        with pytest.raises(SquallError, match=problem):
            read(source)


def test_messages_of_the_log_are_no_rows(tmp_path: Path) -> None:
    assert read(opened(tmp_path / "r.json", envelope("m"), envelope("c", None, A))) == [(1, "a", 5, 1)]


@given(seed=st.integers(0, 2**32))
def property_all_that_a_table_went_through(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Its rows, told with whole old rows or by key, in envelopes with a schema or without."""
    random, table, changes = Random(seed), dict[int, Row](), list[Any]()
    for _ in range(random.randint(0, 30)):
        id, row = random.randint(1, 4), {"s": random.choice("ab"), "v": random.choice([None, 1, 2])}
        old, new = table.pop(id, None), {"id": id} | row
        op = "c" if old is None else random.choice("ud")
        if op != "d":
            table[id] = new
        told = envelope(op, old, new if op != "d" else None)
        changes.append({"payload": told, "schema": None} if random.random() < 0.3 else told)
        changes += ["null"] * (op == "d")
    path, expected = tmp_path_factory.mktemp("d") / "r.json", sorted(map(str, table.values()))
    counts = dict[str, int]()
    for *values, mult in read(opened(path, *changes)) if changes else ():
        shown = str(dict(zip(("id", "s", "v"), values, strict=True)))
        counts[shown] = counts.get(shown, 0) + mult
    assert sorted(row for row, count in counts.items() for _ in range(count)) == expected
    assert min([0, *counts.values()]) == 0
    last = dict[int, str]()
    for line in changes:
        inner = line.get("payload", line) if isinstance(line, dict) else {}
        if inner.get("before"):  # NB: REPLICA IDENTITY DEFAULT
            inner["before"] = {"id": inner["before"]["id"]} if inner["op"] == "d" else None
    for *values, mult in read(opened(path, *changes, key=("id",))) if changes else ():
        last.pop(values[0], None)
        if mult > 0:
            last[values[0]] = str(dict(zip(("id", "s", "v"), values, strict=True)))
    assert sorted(last.values()) == expected


def oracle_envelopes_of_one_shape() -> None:
    """Lines that are parsed together have the values that each has by itself."""
    draw, together = Random(1), 0
    fields = (Field("id", INT, False), Field("k", BIGINT), Field("t", VARCHAR))

    def row() -> dict[str, Any]:
        return {"id": draw.randrange(9), "k": draw.choice([None, 5]), "t": draw.choice([None, "x"])}

    for _ in range(200):
        kinds, is_within = draw.choice([(0,), (1,), (2,), (3,), (0, 1, 2, 3)]), draw.random() < 0.3
        lines = list[bytes]()
        for _ in range(draw.randrange(1, 5)):
            kind = draw.choice(kinds)
            images = {"before": (None, row(), row(), 5)[kind], "after": (row(), row(), None, row())[kind]}
            envelope = {**images, "op": draw.choice("cud")}
            lines.append(json.dumps({"payload": envelope} if is_within else envelope).encode())
        data = b"\n".join(lines) + b"\n"
        for columns in (Envelopes(fields, ("id",)).columns, Envelopes(fields).columns):
            if (found := _parse_alike(data, columns, len(lines))) is not None:
                together += 1
                apart = _parse_lines(data, columns, len(lines), {})
                texts = [column.cast(pa.string()).to_pylist() for column in found.columns]
                assert texts == [column.to_pylist() for column in apart.columns]
    assert together > 200
