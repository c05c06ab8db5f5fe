"""Delta tables in and out: after each version, the answer is DuckDB's over the table as it was then."""

import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake

from squallpy.base.errors import SquallError
from tests.connectors.killed_runs import BACKENDS, kill_again_and_again
from tests.connectors.runs import Answers, Row, Running, Versions, run
from tests.marks import long

FEED = {"delta.enableChangeDataFeed": "true"}
SCHEMA = pa.schema([
    ("k", pa.int64()), ("part", pa.int32()), ("name", pa.string()), ("x", pa.decimal128(12, 2)),
    ("moment", pa.timestamp("us", "UTC")),
])  # fmt: skip
QUERY = "SELECT name, part, COUNT(*) AS n, SUM(x) AS x, MAX(moment) AS moment FROM r GROUP BY name, part"


class World:
    """A Delta table that changes."""

    def __init__(self, folder: Path, seed: int, feed: bool = True) -> None:
        self.folder, self.draw = folder, random.Random(seed)
        write_deltalake(
            folder, SCHEMA.empty_table(), partition_by=["part"] if seed % 2 else None,
            configuration=FEED if feed else {},
        )  # fmt: skip

    def append(self) -> None:
        rows = [self._row(self.draw.randrange(50)) for _ in range(self.draw.randrange(1, 9))]
        write_deltalake(self.folder, pa.Table.from_pylist(rows, SCHEMA), mode="append")

    def change(self) -> None:
        """Append, update, delete, merge, or put files together."""
        table, k = DeltaTable(self.folder), self.draw.randrange(50)
        match self.draw.randrange(6):
            case 0 | 1:
                self.append()
            case 2:
                table.update(updates={"x": "x + 1", "name": f"'n{k % 3}'"}, predicate=f"k < {k}")
            case 3:
                table.delete(f"k = {k} OR name IS NULL")
            case 4:
                rows = pa.Table.from_pylist([self._row(n) for n in {*range(k, k + 5)}], SCHEMA)
                table.merge(rows, "t.k = s.k AND t.part = s.part", "s", "t").when_matched_update_all(
                ).when_not_matched_insert_all().execute()  # fmt: skip
            case _:
                table.optimize.compact()

    def answer(self) -> Counter[Row]:
        return answer_of(DeltaTable(self.folder).to_pyarrow_table())

    def _row(self, k: int) -> dict[str, Any]:
        draw = self.draw
        moment = draw.choice([None, 1_700_000_000_000_000 + draw.randrange(10**12)])
        x = draw.randrange(10**7)  # NB: an UPDATE's feed by deltalake lacks rows that others become
        return {"k": k, "part": k % 3, "name": draw.choice([None, "a", "b"]), "x": x, "moment": moment}


def answer_of(r: pa.Table) -> Counter[Row]:
    """Ask DuckDB over the rows of a version."""
    plain = r.set_column(4, "moment", r.column("moment").cast(pa.timestamp("us")))
    with duckdb.connect() as database:
        database.register("r", plain)
        return Counter(database.execute(QUERY).fetchall())


def script(world: World, options: str, sink: str = "") -> str:
    out = f"CREATE SINK s USING delta OPTIONS (path '{sink}', mode 'upsert') AS {QUERY};" if sink else ""
    return f"CREATE STREAM r USING delta OPTIONS (path '{world.folder}'{options}); {out} {QUERY};"


def written(folder: Path) -> Counter[Row]:
    table = DeltaTable(folder).to_pyarrow_table().select(["name", "part", "n", "x", "moment"])
    plain = table.set_column(4, "moment", table.column("moment").cast(pa.timestamp("us")))
    return Counter(tuple(row.values()) for row in plain.to_pylist())


@pytest.mark.parametrize("seed", [1, *map(long, (0, *range(2, 12)))])
def oracle_random_versions(tmp_path: Path, seed: int) -> None:
    """Each batch ends at a version, and has all of it."""
    world = World(tmp_path / "r", seed)
    for _ in range(4):
        world.change()
    versions = Versions(world.answer())
    answers = Answers(versions.check)
    for turn in range(4):
        text = script(world, ", readChangeFeed 'true'", str(tmp_path / "s"))
        run(text, answers, tmp_path / "kept", rows=1 if turn % 2 else None)
        assert answers.rows == world.answer() == written(tmp_path / "s")
        for _ in range(world.draw.randrange(5)):
            world.change()
            versions.tell(world.answer())
    assert versions.batches == answers.batches


@pytest.mark.spark
@pytest.mark.connectors
def oracle_versions_on_spark(tmp_path: Path) -> None:
    world, answers = World(tmp_path / "r", 3), Answers()
    for _ in range(2):
        for _ in range(4):
            world.change()
        text = script(world, ", readChangeFeed 'true'", str(tmp_path / "s"))
        run(text, answers, tmp_path / "kept", backend="spark")
        assert answers.rows == world.answer() == written(tmp_path / "s")


def test_appends_and_tables(tmp_path: Path) -> None:
    """Without the feed what is appended is read, files that are put together are not, and a delete is refused."""
    world, answers = World(tmp_path / "r", 1, feed=False), Answers()
    for _ in range(3):
        world.append()
        run(script(world, ""), answers, tmp_path / "kept")
        assert answers.rows == world.answer()
        DeltaTable(world.folder).optimize.compact()
    text = f"CREATE TABLE r USING delta OPTIONS (path '{world.folder}'); {QUERY};"
    assert run(text).rows == world.answer()
    assert not run(script(world, f", startingVersion '{DeltaTable(world.folder).version() + 1}'")).rows
    with pytest.raises(SquallError, match=r"SQ4009 .*startingVersion is 99, and the newest version of .*/r is [0-9]+,"):
        run(script(world, ", startingVersion '99'"))
    first = run(script(world, ", startingVersion '5'")).rows
    assert first != world.answer() and sum(row[2] for row in first) < sum(row[2] for row in world.answer())
    DeltaTable(world.folder).delete("k < 1000")
    with pytest.raises(
        SquallError, match=r"SQ4009 .*version [0-9]+ of .*/r deletes or updates rows, readChangeFeed 'true'"
    ):
        run(script(world, ""), answers, tmp_path / "kept")


def test_what_is_wrong_with_tables(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r"SQ4001 script.sql:1:15: there is no Delta table .*/nothing"):
        run(f"CREATE STREAM r USING delta OPTIONS (path '{tmp_path}/nothing'); SELECT * FROM r;")
    with pytest.raises(SquallError, match='option "startingVersion" cannot be "first", the number of a version'):
        run("CREATE STREAM r USING delta OPTIONS (path 'r', startingVersion 'first'); SELECT * FROM r;")
    with pytest.raises(SquallError, match='option "readchangefeed" is for a STREAM, and a TABLE is read once'):
        run("CREATE TABLE r USING delta OPTIONS (path 'r', readChangeFeed 'true'); SELECT * FROM r;")
    world = World(tmp_path / "r", 1, feed=False)
    with pytest.raises(SquallError, match=r"has no change data feed, run ALTER TABLE delta.`.*` SET TBLPROPERTIES"):
        run(script(world, ", readChangeFeed 'true'"))
    world = World(tmp_path / "q", 1)
    world.append()
    run(script(world, ", readChangeFeed 'true'"), checkpoint=tmp_path / "kept")
    world.append()
    DeltaTable(world.folder).update(updates={"x": "x + 1"})
    shutil.rmtree(world.folder / "_change_data")
    with pytest.raises(SquallError, match=r"SQ4009 .*versions 2 to 3 of .*/q cannot be read any more: vacuumed"):
        run(script(world, ", readChangeFeed 'true'"), checkpoint=tmp_path / "kept")


def test_tables_whose_columns_change(tmp_path: Path) -> None:
    """Columns that are not read may; a run ends where one that is read has gone, the batch before being whole."""
    world, answers = World(tmp_path / "r", 0), Answers()
    of = f"USING delta OPTIONS (path '{world.folder}', readChangeFeed 'true')"
    text = f"CREATE STREAM r (k BIGINT, part INT) {of}; SELECT part, COUNT(*) AS n FROM r GROUP BY part;"
    world.append()
    run(text, answers, tmp_path / "kept")
    rows = DeltaTable(world.folder).to_pyarrow_table()
    wider = rows.append_column("later", pa.array([1] * len(rows), pa.int64()))
    write_deltalake(world.folder, wider, mode="append", schema_mode="merge")
    with Running(text, tmp_path / "kept", answers) as running:
        running.wait_for(lambda: sum(row[1] for row in answers.rows) == 2 * len(rows))
        before = answers.rows.copy()
        write_deltalake(world.folder, rows.drop_columns(["part"]), mode="overwrite", schema_mode="overwrite")
        assert 'SQ4009 script.sql:1:15: the column "part" of' in str(ended := running.ended())
        assert "is there no more in version 3, the batch before is whole" in str(ended)
    with pytest.raises(SquallError, match=r'SQ4002 .*delta has no column "part", known: k, moment, name, x$'):
        run(text, answers, tmp_path / "kept")
    assert answers.rows == before


def fault_what_a_sink_cannot_write(tmp_path: Path) -> None:
    """A column that is missing is told with the statement, a broken constraint with the batch; mended, it goes on."""
    world, sink = World(tmp_path / "r", 0, feed=False), tmp_path / "s"
    world.append()
    of = f"CREATE SINK s USING delta OPTIONS (path '{sink}', mode 'upsert') AS"
    text = (
        f"CREATE STREAM r USING delta OPTIONS (path '{world.folder}'); {of} SELECT k, COUNT(*) AS n FROM r GROUP BY k;"
    )
    write_deltalake(sink, pa.schema([("k", pa.int64())]).empty_table())
    with pytest.raises(SquallError, match=r'SQ7005 .*has no column "n", run ALTER TABLE delta.`.*/s` ADD COLUMNS \(n'):
        run(text)
    shutil.rmtree(sink)
    write_deltalake(sink, pa.schema([("k", pa.int64()), ("n", pa.int64())]).empty_table())
    DeltaTable(sink).alter.add_constraint({"few": "n < 1"})
    for _ in range(2):
        with pytest.raises(
            SquallError, match=r"SQ7006 .*batch 0 cannot be written to the Delta table .*the batch before"
        ):
            run(text, checkpoint=tmp_path / "kept")
        assert not DeltaTable(sink).count()
    DeltaTable(sink).alter.drop_constraint("few")
    run(text, checkpoint=tmp_path / "kept")
    assert DeltaTable(sink).count() == len({*DeltaTable(world.folder).to_pyarrow_table()["k"].to_pylist()})


def fault_deletion_vectors(tmp_path: Path) -> None:
    """A table that may have deletion vectors is neither read nor merged into: rows that went would be there."""
    world = World(tmp_path / "r", 1, feed=False)
    world.append()
    feature = TableFeatures.DeletionVectors
    DeltaTable(world.folder).alter.add_feature(feature, allow_protocol_versions_increase=True)
    says = (
        "SQ3001 .*/r has deletionVectors, with which it cannot be read, run ALTER TABLE delta.`.*/r` DROP FEATURE del"
    )
    for kind in ("STREAM", "TABLE"):
        with pytest.raises(SquallError, match=says):
            run(script(world, "").replace("STREAM", kind))
    other = World(tmp_path / "q", 1, feed=False)
    other.append()
    sink = f"CREATE SINK s USING delta OPTIONS (path '{world.folder}', mode 'upsert', key 'k', existing 'keep')"
    query = "SELECT k, MAX(x) AS x FROM r GROUP BY k"
    with pytest.raises(SquallError, match=says):
        run(f"CREATE STREAM r USING delta OPTIONS (path '{other.folder}'); {sink} AS {query};")


def test_names_of_columns_are_quoted(tmp_path: Path) -> None:
    world = World(tmp_path / "r", 1)
    sink = f"CREATE SINK s USING delta OPTIONS (path '{tmp_path}/ö t', mode 'upsert')"
    query = 'SELECT k % 3 AS `it\'s ``k``, "x".y`, COUNT(*) AS `Ü n` FROM r GROUP BY k % 3'
    text = f"CREATE STREAM r USING delta OPTIONS (path '{world.folder}', readChangeFeed 'true'); {sink} AS {query};"
    for _ in range(3):
        world.append()
        run(text, checkpoint=tmp_path / "kept")
    rows = DeltaTable(tmp_path / "ö t").to_pyarrow_table().to_pylist()
    assert {*rows[0]} == {'it\'s `k`, "x".y', "Ü n"} and len({row['it\'s `k`, "x".y'] for row in rows}) == len(rows)
    assert sum(row["Ü n"] for row in rows) == len(DeltaTable(world.folder).to_pyarrow_table())


def test_sinks_that_have_rows(tmp_path: Path) -> None:
    world, sink = World(tmp_path / "r", 1), str(tmp_path / "s")
    world.append()
    text = script(world, "", sink)
    run(text, checkpoint=tmp_path / "1")
    with pytest.raises(SquallError, match=r"SQ7005 .*has 1 batch of this query, and this run begins anew"):
        run(text, checkpoint=tmp_path / "2")
    replaced = text.replace("mode 'upsert'", "mode 'upsert', existing 'replace'")
    world.append()
    answers = run(replaced, checkpoint=tmp_path / "3")
    assert written(tmp_path / "s") == world.answer()
    world.append()
    run(replaced, answers, tmp_path / "3")
    assert written(tmp_path / "s") == world.answer()
    changes = f"CREATE SINK s USING delta OPTIONS (path '{tmp_path}/c', mode 'changes') AS {QUERY};"
    text = f"CREATE STREAM r USING delta OPTIONS (path '{world.folder}'); {changes}"
    for _ in range(2):
        run(text, checkpoint=tmp_path / "4")  # NB: all of its queries have sinks
        world.append()
    rows = Counter[Row]()
    for batch, op, *row in (tuple(r.values()) for r in DeltaTable(tmp_path / "c").to_pyarrow_table().to_pylist()):
        assert batch in (0, 1)
        rows[tuple(row)] += 1 if op == "+" else -1
    assert {row[:4] for row, count in rows.items() if count} == {row[:4] for row in _before(world)}


def _before(world: World) -> Counter[Row]:
    table = DeltaTable(world.folder)
    return answer_of(DeltaTable(world.folder, version=table.version() - 1).to_pyarrow_table())


@pytest.mark.connectors
@pytest.mark.parametrize("backend", BACKENDS)
def fault_kills(tmp_path: Path, backend: str) -> None:
    world, sink = World(tmp_path / "r", 5), tmp_path / "s"
    (tmp_path / "q.sql").write_text(script(world, ", readChangeFeed 'true'", str(sink)).rpartition("; ")[0] + ";")

    def is_done() -> bool:
        return DeltaTable.is_deltatable(str(sink)) and written(sink) == world.answer()

    kill_again_and_again(tmp_path, backend, world.draw, world.change, is_done)
