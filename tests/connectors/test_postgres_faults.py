"""What PostgreSQL, its tables and its slots may have wrong: each is told in one line, and nothing is skipped."""

import logging
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import squallpy
from squallpy.api.session import Session
from squallpy.base.errors import SquallError
from squallpy.runtime.connectors.postgres import postgres_source, slot_log, snapshot
from tests.connectors.runs import PATIENCE, Answers, Row, Running, run
from tests.connectors.servers import PostgresServer
from tests.growing import ROOT

pytestmark = pytest.mark.connectors
T = "CREATE TABLE t (id int PRIMARY KEY, v int, w text)"
PUBLICATION = "CREATE PUBLICATION squall FOR TABLE t"
ROWS = "INSERT INTO t SELECT g, g % 3, 'x' FROM generate_series(1, 30) g"


def stream(
    server: PostgresServer,
    columns: str = "",
    options: str = "",
    query: str = "SELECT v, COUNT(*) AS n FROM t GROUP BY v",
) -> str:
    return f"CREATE STREAM t {columns} USING postgres OPTIONS (url '{server.url}'{options}); {query};"


def sink(server: PostgresServer, options: str = "mode 'upsert'") -> str:
    query = "SELECT v, COUNT(*) AS n FROM t GROUP BY v"
    return stream(server, query=f"CREATE SINK s USING postgres OPTIONS (url '{server.url}', {options}) AS {query}")


def refused(text: str, checkpoint: Path | None = None) -> str:
    with pytest.raises(SquallError) as caught:
        run(text, checkpoint=checkpoint)
    assert caught.value.span
    return str(caught.value)


@pytest.fixture
def table(postgres: PostgresServer) -> PostgresServer:
    postgres.execute(T, PUBLICATION, ROWS)
    return postgres


# before anything is read


NOTHING = "ALTER TABLE t REPLICA IDENTITY NOTHING"
FULL = "run ALTER TABLE public.t REPLICA IDENTITY FULL;"
PARTITIONED = (
    "CREATE TABLE t (id int PRIMARY KEY, v int) PARTITION BY HASH (id)",
    "CREATE TABLE t0 PARTITION OF t FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
)


@pytest.mark.parametrize(
    ("statements", "columns", "says"),
    [
        ([T], "", 'there is no publication "squall", run CREATE PUBLICATION squall FOR TABLE public.t;'),
        ([T, "CREATE PUBLICATION squall"], "", "run ALTER PUBLICATION squall ADD TABLE public.t;"),
        ([T, PUBLICATION, NOTHING], "", "NOTHING, so that old rows are not told, run ALTER TABLE public.t REPLICA"),
        (["CREATE TABLE t (id int, v int)", PUBLICATION], "", f"no primary key, so that old rows are not told, {FULL}"),
        ([T, PUBLICATION], "(id INT, v INT)", f"the stream has no PRIMARY KEY, {FULL}, or declare PRIMARY KEY (id)"),
        ([T, PUBLICATION], "(id INT, v INT PRIMARY KEY)", "the primary key of public.t is (id), not (v)"),
        ([], "(id INT PRIMARY KEY, v INT)", 'has no table "t", write schema.table'),
        ([PUBLICATION.replace(" FOR TABLE t", ""), "CREATE VIEW t AS SELECT 1 AS v"], "", "public.t is a view, whose"),
        ([T.replace("TABLE", "UNLOGGED TABLE")], "", "is UNLOGGED, so that its changes are not told, run ALTER TABLE"),
        ([T.replace("t (", '"T" (')], "", 'has no table "t", did you mean public."T"?'),
        ([T, PUBLICATION], "(id INT PRIMARY KEY, v INT, z INT)", 'has no column "z"'),
        ([T, PUBLICATION], "(id INT PRIMARY KEY, v INT, w INT)", "column \"w\": 'x' is not a valid INT"),
        ([*PARTITIONED, PUBLICATION], "", "run ALTER PUBLICATION squall SET (publish_via_partition_root = true);"),
        (
            [T, f"{PUBLICATION} WITH (publish = 'insert, update, delete')"],
            "",
            "squall tells some changes only, run ALTER PUBLICATION squall SET (publish = 'insert, update,",
        ),
    ],
)
def fault_before_the_first_row(postgres: PostgresServer, statements: list[str], columns: str, says: str) -> None:
    postgres.execute("SELECT 1", *statements)
    if "w INT" in columns:
        postgres.execute(ROWS)
    text = stream(postgres, columns, query="SELECT * FROM t")
    assert says in refused(text)
    assert not postgres.execute("SELECT 1 FROM pg_replication_slots WHERE NOT temporary")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("slotname 'x'", 'unknown option "slotname" of postgres, did you mean "slot.name"?'),
        ("changelog 'upsert'", 'option "changelog" is not for postgres, which tells what comes and goes'),
        ("snapshot.mode 'sometimes'", 'option "snapshot.mode" cannot be "sometimes"'),
        ("password '${env:NOT_THERE}'", "the environment has no variable NOT_THERE, export NOT_THERE=…"),
        ("password '${file:/not/there}'", "the secret in /not/there cannot be read: no such file or directory"),
        ("connect_timeout 'soon'", 'option "connect_timeout" cannot be "soon", an interval above 0'),
        ("table ' '", 'option "table" is empty'),
        ("password '${ENV:X}'", "${ENV:…} is no place of secrets, write ${env:NAME} or ${file:PATH}"),
        ("slot.name 'Squall-1'", '"Squall-1" is no name of a slot, write a-z, 0-9 and _, 54 at most'),
    ],
)
def fault_of_options(options: str, says: str) -> None:
    assert says in refused(
        f"CREATE STREAM t USING postgres OPTIONS (url 'postgresql://h', {options}); SELECT 1 FROM t;"
    )


def test_a_server_that_is_not_there_is_waited_for(postgres: PostgresServer) -> None:
    url = "postgresql://me:secret@127.0.0.1:9/shop"
    said = refused(f"CREATE STREAM t USING postgres OPTIONS (url '{url}', connect_timeout '200 ms'); SELECT 1 FROM t;")
    assert "SQ8010" in said and "PostgreSQL at 127.0.0.1:9/shop cannot be reached" in said and "may pass" in said
    assert "secret" not in said.replace("'postgresql://me:secret@", "")
    unknown = postgres.url.removesuffix("postgres") + "nobody"
    said = refused(f"CREATE STREAM t USING postgres OPTIONS (url '{unknown}'); SELECT 1 FROM t;")
    assert 'database "nobody" does not exist' in said and "a retry does not help" in said


def fault_what_a_retry_does_not_help(table: PostgresServer) -> None:
    """It is told at once."""
    table.execute("DROP ROLE IF EXISTS poor", "CREATE ROLE poor LOGIN", "GRANT SELECT ON t TO poor")
    assert "it is there: run GRANT USAGE ON SCHEMA public" in refused(
        f"CREATE STREAM t USING postgres OPTIONS (url '{table.url.replace('postgres@', 'poor@')}'); SELECT 1 FROM t;"
    )
    table.execute("GRANT USAGE ON SCHEMA public TO poor")
    for url in (f"{table.url}?sslmode=require", table.url.replace("postgres@", "poor@")):
        options = f"url '{url}', connect_timeout '1 hour'"
        said = refused(f"CREATE STREAM t USING postgres OPTIONS ({options}); SELECT 1 FROM t;")
        assert "SQ8010" in said and "a retry does not help" in said
    table.execute("DROP OWNED BY poor", "DROP ROLE poor")


def fault_targets_of_the_same_script(table: PostgresServer) -> None:
    text = sink(table)
    query = text[text.index(" AS SELECT") :].rstrip(";")
    for options, says in (("table 't'", 't is read by "t" of the same script'), ("table 's'", 'the sinks "s" and "u"')):
        other = f"CREATE SINK u USING postgres OPTIONS (url '{table.url}', {options}, mode 'upsert'){query};"
        assert "SQ7005" in (said := refused(text + other)) and says in said


def test_tables_that_are_published(postgres: PostgresServer, tmp_path: Path) -> None:
    """A table of a sink is in a publication FOR ALL TABLES, which asks for what tells rows apart."""
    postgres.execute(T, "CREATE PUBLICATION squall FOR ALL TABLES", ROWS)
    run(sink(postgres), checkpoint=tmp_path / "kept")
    postgres.execute("UPDATE t SET v = 7 WHERE v = 1")
    run(sink(postgres), checkpoint=tmp_path / "kept")
    assert Counter(postgres.execute("SELECT v, n FROM s")) == Counter([(0, 10), (2, 10), (7, 10)])


def fault_slots(table: PostgresServer, tmp_path: Path) -> None:
    """A slot that is there, is in use, or has gone."""
    text, kept = stream(table), tmp_path / "kept"
    table.execute("SELECT pg_create_logical_replication_slot('squall', 'pgoutput')")
    assert 'the replication slot "squall"' in (said := refused(text, kept)) and "is there already" in said
    assert "squall slots drop URL squall" in said
    table.drop_slot()
    with Running(text, kept) as running:
        running.wait_for(lambda: running.answers.batches > 0)
        assert "is there already" in refused(text, tmp_path / "other")
    run(text, checkpoint=kept)
    table.drop_slot()
    said = refused(text, kept)
    assert "SQ4009" in said and "is gone: changes since" in said and "another checkpoint" in said


def fault_a_slot_that_goes_in_a_run(table: PostgresServer, tmp_path: Path) -> None:
    with Running(stream(table), tmp_path / "kept") as running:
        running.wait_for(lambda: running.answers.batches > 0)
        with psycopg.connect(table.url, autocommit=True) as connection:
            done = False
            while not done:  # NB: the run takes its slot again when its connection is cut
                connection.execute("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active")
                try:
                    connection.execute("SELECT pg_drop_replication_slot('squall')")
                    done = True
                except psycopg.errors.ObjectInUse:
                    pass
        assert 'the replication slot "squall"' in str(error := running.ended()) and "is gone" in str(error)


def fault_a_server_that_keeps_too_little(table: PostgresServer, tmp_path: Path) -> None:
    """A log without changes of rows, and one that is cut before it was read."""
    table.stop()
    table.start(wal_level="replica")
    assert "wal_level is replica, run ALTER SYSTEM SET wal_level = logical;" in refused(stream(table))
    table.stop()
    table.start(max_slot_wal_keep_size="1MB")
    run(stream(table), checkpoint=tmp_path / "kept")
    for _ in range(4):
        table.execute("INSERT INTO t SELECT COALESCE(MAX(id), 0) + 1 FROM t", "SELECT pg_switch_wal()", "CHECKPOINT")
    said = refused(stream(table), tmp_path / "kept")
    table.stop()
    table.start()
    assert "SQ4009" in said and "has lost changes since" in said and "max_slot_wal_keep_size" in said


# in a run


GONE = 'the column "v" of public.t is there no more at'


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["ALTER TABLE t DROP COLUMN v", "INSERT INTO t VALUES (100, 'y')"], GONE),
        (["ALTER TABLE t RENAME COLUMN v TO u", "INSERT INTO t VALUES (100, 1, 'y')"], GONE),
        (["ALTER TABLE t ALTER COLUMN v TYPE bigint", "DELETE FROM t WHERE id = 1"], "of public.t has another type at"),
    ],
)
def fault_changes_of_tables(table: PostgresServer, tmp_path: Path, statements: list[str], says: str) -> None:
    """The batch before is whole, and the same command stops at the same place."""
    text = stream(table, "(id INT PRIMARY KEY, v INT)")
    answers = run(text, checkpoint=tmp_path / "kept")
    assert answers.rows == Counter([(0, 10), (1, 10), (2, 10)])
    with Running(text, tmp_path / "kept", answers) as running:
        running.wait_for(lambda: bool(table.execute("SELECT 1 FROM pg_stat_replication")))
        table.execute("INSERT INTO t VALUES (99, 0, 'x')", *statements)
        assert says in str(error := running.ended()) and "SQ4009" in str(error)
    assert answers.rows == Counter([(0, 11), (1, 10), (2, 10)])


def test_truncations(postgres: PostgresServer, tmp_path: Path) -> None:
    """All rows that are kept by key go, also those of the same transaction, and none that come behind."""
    postgres.execute(
        'CREATE TABLE "T.1" (a text, b numeric(30,2), v int, w text, PRIMARY KEY (b, a))',
        'ALTER TABLE "T.1" ALTER w SET STORAGE EXTERNAL',
        "CREATE TABLE u (id int PRIMARY KEY)",
        'CREATE PUBLICATION squall FOR TABLE "T.1", u',
        """INSERT INTO "T.1" SELECT 'é' || g, g / 4.0, g % 3, repeat('w', 3000) FROM generate_series(1, 30) g""",
        "INSERT INTO u VALUES (1)",
    )
    options = f"USING postgres OPTIONS (url '{postgres.url}'"
    text = f"""CREATE STREAM t {options}, table 'public."T.1"'); CREATE STREAM u {options});
        SELECT v, COUNT(*) AS n, SUM(LENGTH(w)) AS w, MAX(b) AS b FROM t CROSS JOIN u GROUP BY v;"""

    def read(answers: Answers) -> list[Row]:
        return sorted(run(text, answers, tmp_path / "kept").rows, key=str)

    answers = Answers()
    assert read(answers)[0] == (0, 10, 30_000, Decimal("7.50"))
    postgres.commit([
        """UPDATE "T.1" SET a = 'x' || a, w = 'y' WHERE v = 1""",
        'TRUNCATE "T.1", u', "INSERT INTO u VALUES (1)",
        """INSERT INTO "T.1" VALUES ('é4', 1, 1, repeat('z', 3000)), ('b', 2, NULL, NULL)""",
        """UPDATE "T.1" SET v = 2 WHERE v = 1""",
    ])  # fmt: skip
    assert read(answers) == [(2, 1, 3000, Decimal("1.00")), (None, 1, None, Decimal("2.00"))]
    postgres.execute('TRUNCATE "T.1"')
    assert read(answers) == []
    postgres.execute("""INSERT INTO "T.1" VALUES ('b', 2, 5, 'q')""")
    assert read(answers) == [(5, 1, 1, Decimal("2.00"))]


def test_commits_of_an_earlier_version(table: PostgresServer, tmp_path: Path) -> None:
    """The table gets the column that it lacks, and is otherwise left alone."""
    run(sink(table), checkpoint=tmp_path / "kept")
    table.execute("ALTER TABLE squall_commits DROP COLUMN run", "INSERT INTO t VALUES (50, 7, 'x')")
    run(sink(table), checkpoint=tmp_path / "kept")
    assert table.execute("SELECT n FROM s WHERE v = 7") == [(1,)]
    assert table.execute("SELECT 1 FROM squall_commits WHERE run IS NOT NULL") == [(1,)]
    table.execute("DROP TABLE squall_commits", "CREATE TABLE squall_commits (who text, batch int)")
    says = "public.squall_commits of PostgreSQL at 127.0.0.1"
    assert says in (said := refused(sink(table), tmp_path / "kept")) and 'it has no "query"' in said


def fault_a_key_that_changes_beside_a_value_out_of_line(table: PostgresServer, tmp_path: Path) -> None:
    """Nobody tells that value under its new key; with whole old rows the server does."""
    table.execute("ALTER TABLE t ALTER w SET STORAGE EXTERNAL", "UPDATE t SET w = repeat('w', 5000) WHERE id = 1")
    text = stream(table, query="SELECT id, LENGTH(w) AS w FROM t WHERE v = 1")
    answers = run(text, checkpoint=tmp_path / "kept")
    assert answers.rows[1, 5000] == 1
    table.execute("ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET id = 100 WHERE id = 1")
    assert run(text, answers, tmp_path / "kept").rows[100, 5000] == 1
    table.execute("ALTER TABLE t REPLICA IDENTITY DEFAULT", "UPDATE t SET id = 200 WHERE id = 100")
    says = (
        r'SQ4009 .*the key of a row of public.t has changed, and its "w", .* run ALTER TABLE public.t REPLICA IDENTITY'
    )
    with pytest.raises(SquallError, match=says):
        run(text, answers, tmp_path / "kept")
    assert answers.rows[100, 5000] == 1


def fault_a_truncation_without_a_key(postgres: PostgresServer, tmp_path: Path) -> None:
    """The batch before is whole, and the same command stops at the same place."""
    postgres.execute("CREATE TABLE t (v int)", PUBLICATION, "ALTER TABLE t REPLICA IDENTITY FULL",
                     "INSERT INTO t VALUES (1), (1)")  # fmt: skip
    text = stream(postgres)
    answers = run(text, checkpoint=tmp_path / "kept")
    postgres.execute("INSERT INTO t VALUES (1)", "TRUNCATE t")
    says = r"SQ4009 .*public.t was truncated at [0-9A-F]+/[0-9A-F]+, and t has no PRIMARY KEY by which rows are kept"
    with pytest.raises(SquallError, match=says):
        run(text, answers, tmp_path / "kept")
    assert answers.rows == Counter([(1, 3)])
    with pytest.raises(SquallError, match=says):
        run(text, answers, tmp_path / "kept")


def test_a_column_that_is_added_is_not_read(table: PostgresServer, tmp_path: Path) -> None:
    answers = run(stream(table), checkpoint=tmp_path / "kept")
    table.execute(
        "ALTER TABLE t ADD COLUMN x int DEFAULT 5", "INSERT INTO t VALUES (99, 0, 'x', 7)", "UPDATE t SET x = 8"
    )
    table.execute("ALTER TABLE t DROP COLUMN w")
    table.execute("DELETE FROM t WHERE id = 1")
    assert run(stream(table), answers, tmp_path / "kept").rows == Counter({(0, 11): 1, (1, 9): 1, (2, 10): 1})


def test_a_server_that_goes_away_is_waited_for(
    table: PostgresServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Source and sink go on when it is back, and tell it once."""
    caplog.set_level(logging.WARNING, "squallpy")
    with Running(sink(table), tmp_path / "kept") as running:
        running.wait_for(lambda: len(table.execute("SELECT 1 FROM pg_tables WHERE tablename = 's'")) == 1)
        running.wait_for(lambda: Counter(table.execute("SELECT v, n FROM s")) == Counter([(0, 10), (1, 10), (2, 10)]))
        for end in (table.stop, table.kill):
            end()
            table.start()
            table.execute("UPDATE t SET v = v + 1")
            found = Counter(table.execute("SELECT v, COUNT(*) FROM t GROUP BY v"))
            running.wait_for(lambda found=found: Counter(table.execute("SELECT v, n FROM s")) == found)  # type: ignore[misc]
    events = Counter(record.getMessage() for record in caplog.records)
    assert 2 <= events["server is away"] <= 4 and events["server is back"] >= 2


@pytest.mark.parametrize("where", [postgres_source, slot_log])
@pytest.mark.parametrize("kept", [True, False])
def test_a_server_that_goes_away_while_a_run_begins(
    table: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: Any, kept: bool
) -> None:
    """What was asked of it is asked anew: for the columns, and for the slot."""
    found, killed = where.find_table, list[bool]()

    def find_table(*asked: Any) -> Any:
        if not killed:
            killed.append(True)
            table.kill()
            table.start()
        return found(*asked)

    monkeypatch.setattr(where, "find_table", find_table)
    answers = run(stream(table), checkpoint=tmp_path / "kept" if kept else None)
    assert killed and answers.rows == Counter([(0, 10), (1, 10), (2, 10)])


def test_a_stream_without_a_checkpoint_leaves_no_slot(table: PostgresServer) -> None:
    run(stream(table))
    assert not table.execute("SELECT 1 FROM pg_replication_slots WHERE NOT temporary")


# sinks


def fault_sinks_that_have_rows(table: PostgresServer, tmp_path: Path) -> None:
    answer = [(0, 10), (1, 10), (2, 10)]
    run(sink(table), checkpoint=tmp_path / "1")
    assert sorted(table.execute("SELECT * FROM s")) == answer
    table.drop_slot()
    said = refused(sink(table), tmp_path / "2")
    assert "SQ7005" in said and "has 1 batch of this query, and this run begins anew" in said
    table.execute("DROP TABLE squall_commits", "INSERT INTO s VALUES (9, 9)")
    assert "has rows, and this run begins anew" in refused(sink(table), tmp_path / "3")
    run(sink(table, "mode 'upsert', existing 'keep'"), checkpoint=tmp_path / "4")
    assert sorted(table.execute("SELECT * FROM s")) == [*answer, (9, 9)]
    table.drop_slot()
    run(sink(table, "mode 'upsert', existing 'replace'"), checkpoint=tmp_path / "5")
    assert sorted(table.execute("SELECT * FROM s")) == answer


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ("CREATE TABLE s (v int PRIMARY KEY)", 'has no column "n", run ALTER TABLE public.s ADD COLUMN "n" bigint;'),
        ("CREATE TABLE s (v int, n bigint)", "has no unique key (v), by which mode 'upsert' replaces rows"),
        ("CREATE TABLE s (v int PRIMARY KEY, n bigint CHECK (n < 5))", "batch 0 cannot be written to s of"),
        ("CREATE TABLE s (v int PRIMARY KEY, n smallint CHECK (n < 5))", 'violates check constraint "s_n_check"'),
        ("CREATE VIEW s AS SELECT 1 AS v, 2 AS n WHERE false", "has no unique key"),
    ],
)  # fmt: skip
def fault_tables_of_sinks(table: PostgresServer, tmp_path: Path, made: str, says: str) -> None:
    table.execute(made)
    assert says in refused(sink(table), tmp_path / "kept")
    if "CHECK" in made:  # NB: what is mended goes on
        table.execute("ALTER TABLE s DROP CONSTRAINT s_n_check")
        run(sink(table), checkpoint=tmp_path / "kept")
        assert sorted(table.execute("SELECT * FROM s")) == [(0, 10), (1, 10), (2, 10)]


def fault_names_that_the_server_cuts_off(table: PostgresServer) -> None:
    """A name of more than 63 bytes is refused before anything is made; of umlauts these are 32."""
    of = f"USING postgres OPTIONS (url '{table.url}', mode 'upsert', key 'v'"
    for name, options, says in (
        ("ä" * 32, "", f'"{"ä" * 32}" has 64 bytes, and a name of PostgreSQL at'),
        ("n", f", table 'public.{'t' * 64}'", f'"{"t" * 64}" has 64 bytes, and a name of PostgreSQL at'),
    ):
        query = f'SELECT v, COUNT(*) AS "{name}" FROM t GROUP BY v'
        text = stream(table, query=f"CREATE SINK s {of}{options}) AS {query}")
        said = refused(text)
        assert "SQ7005" in said and says in said and "at most 63, " in said
        assert not table.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public' AND tablename <> 't'")
    query = f"SELECT v, COUNT(*) AS {'n' * 63} FROM t GROUP BY v"
    run(stream(table, query=f"CREATE SINK s {of}) AS {query}"))
    assert table.execute(f"SELECT v, {'n' * 63} FROM s WHERE v = 1") == [(1, 10)]


def fault_a_full_disk_at_the_server(table: PostgresServer, tmp_path: Path) -> None:
    """Nothing of the batch is there, and the same command goes on when there is room."""
    run(sink(table), checkpoint=tmp_path / "kept")
    table.execute(
        "CREATE FUNCTION fails() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'could not extend file'"
        " USING ERRCODE = 'disk_full'; END $$",
        "CREATE TRIGGER fails BEFORE INSERT ON s FOR EACH STATEMENT EXECUTE FUNCTION fails()",
        "DELETE FROM t WHERE v = 1",
        "UPDATE t SET v = 5 WHERE v = 2",
    )
    for _ in range(2):
        said = refused(sink(table), tmp_path / "kept")
        assert "SQ7006" in said and "could not extend file (53100), the batch before is whole" in said
        assert sorted(table.execute("SELECT * FROM s")) == [(0, 10), (1, 10), (2, 10)]
    table.execute("DROP TRIGGER fails ON s")
    run(sink(table), checkpoint=tmp_path / "kept")
    assert sorted(table.execute("SELECT * FROM s")) == [(0, 10), (5, 10)]


def test_modes_of_sinks(table: PostgresServer, tmp_path: Path) -> None:
    query = "SELECT v, COUNT(*) AS n FROM t GROUP BY v"
    of = f"USING postgres OPTIONS (url '{table.url}', mode"
    text = stream(table, query=f"CREATE SINK c {of} 'changes') AS {query}")
    run(text, checkpoint=tmp_path / "kept")
    table.execute("DELETE FROM t WHERE v = 1", "UPDATE t SET v = NULL WHERE v = 2")
    run(text, checkpoint=tmp_path / "kept")
    rows = table.execute("SELECT v, n, SUM(CASE op WHEN '+' THEN 1 ELSE -1 END) FROM c GROUP BY v, n")
    assert Counter({row[:2]: row[2] for row in rows if row[2]}) == Counter([(0, 10), (None, 10)])
    table.execute("CREATE TABLE numbers AS SELECT g AS k, g * 1.5 AS x FROM generate_series(1, 5) g")
    once = f"CREATE TABLE n USING postgres OPTIONS (url '{table.url}', table 'numbers');"
    run(f"{once} CREATE SINK f {of} 'final') AS SELECT k, x, k % 2 = 0 AS even FROM n;")
    assert table.execute("SELECT SUM(k), SUM(x), COUNT(*) FILTER (WHERE even) FROM f") == [(15, 22.5, 2)]
    run(f"{once} CREATE SINK a {of} 'append') AS SELECT k, x FROM n;")
    assert table.execute("SELECT COUNT(*) FROM a") == [(5,)]


def test_null_is_a_key(table: PostgresServer, tmp_path: Path) -> None:
    for statement in ("UPDATE t SET v = NULL WHERE v = 1", "UPDATE t SET v = NULL WHERE v = 2", "UPDATE t SET v = 7"):
        run(sink(table), checkpoint=tmp_path / "kept")
        table.execute(statement)
    run(sink(table), checkpoint=tmp_path / "kept")
    assert table.execute("SELECT * FROM s") == [(7, 30)]


def fault_a_slot_that_was_moved(table: PostgresServer, tmp_path: Path) -> None:
    """Changes that somebody else has taken are missed, and those of other tables are not."""
    run(stream(table), checkpoint=tmp_path / "kept")
    table.execute("CREATE TABLE others AS SELECT 1 AS x", "INSERT INTO t VALUES (99, 0, 'x')")
    table.execute("SELECT pg_replication_slot_advance('squall', pg_current_wal_lsn())")
    table.execute("INSERT INTO t VALUES (100, 0, 'x')")
    assert "is told no more: its slot has moved on" in refused(stream(table), tmp_path / "kept")


def test_a_session(table: PostgresServer, tmp_path: Path) -> None:
    """Views of a session follow tables; what a stream that is STORED has read is there for views that come later."""

    def follow(session: Session, view: str, query: str) -> None:
        wanted, until = sorted(table.execute(query)), time.monotonic() + PATIENCE
        while sorted(session.query(f"SELECT * FROM {view}").to_arrow().to_pylist(), key=str) != sorted(
            [dict(zip(("v", "n"), row, strict=True)) for row in wanted], key=str
        ):
            assert time.monotonic() < until
            session.run_until_caught_up()

    counts, sums = "SELECT v, COUNT(*) AS n FROM t GROUP BY v", "SELECT v, SUM(id) AS n FROM t GROUP BY v"
    with closing(squallpy.connect(checkpoint=tmp_path / "kept")) as session:
        session.sql(f"CREATE STREAM t USING postgres OPTIONS (url '{table.url}') STORED")
        session.sql(f"CREATE MATERIALIZED VIEW a AS {counts}")
        follow(session, "a", counts)
        table.execute("DELETE FROM t WHERE v = 2", "UPDATE t SET w = 'y', v = 9 WHERE id = 1")
        follow(session, "a", counts)
        session.sql(f"CREATE MATERIALIZED VIEW b AS {sums}")
        follow(session, "b", sums)
    table.execute("INSERT INTO t VALUES (77, 7, 'z')")
    with closing(squallpy.connect(checkpoint=tmp_path / "kept")) as session:
        follow(session, "a", counts)
        follow(session, "b", sums)
    table.drop_slot()
    with closing(squallpy.connect()) as session:
        session.sql(f"CREATE STREAM t USING postgres OPTIONS (url '{table.url}')")
        session.sql(f"CREATE MATERIALIZED VIEW a AS {counts}")
        follow(session, "a", counts)
        session.sql(f"CREATE MATERIALIZED VIEW b AS {sums}")  # NB: what no batch has read yet is there
        table.execute("INSERT INTO t VALUES (78, 7, 'z')")
        follow(session, "a", counts)
        follow(session, "b", sums)
        with pytest.raises(SquallError, match="create views before rows come"):
            session.sql("CREATE MATERIALIZED VIEW c AS SELECT MAX(id) AS n FROM t")


def test_a_copy_that_was_not_completed_begins_anew(
    table: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that dies while it copies leaves a slot, which the next one drops: rows are neither twice nor missing."""
    copied = snapshot.copy_table

    def dies(*words: Any) -> Iterator[pa.Table]:
        yield next(copied(*words))
        raise KeyboardInterrupt

    monkeypatch.setattr(slot_log, "copy_table", dies)
    with pytest.raises(KeyboardInterrupt):
        run(stream(table), checkpoint=tmp_path / "kept")
    assert table.execute("SELECT slot_name FROM pg_replication_slots") == [("squall",)]
    monkeypatch.undo()
    table.execute("DELETE FROM t WHERE id <= 3")
    answers = run(stream(table), checkpoint=tmp_path / "kept", rows=7)
    assert answers.rows == Counter([(0, 9), (1, 9), (2, 9)]) and answers.batches == 4


def test_a_copy_goes_on_where_a_run_was_stopped(table: PostgresServer, tmp_path: Path) -> None:
    """Changes come behind all rows of the copy, also when the run is another."""

    def stop_after(count: int) -> Callable[[Counter[Row]], None]:
        stop.clear()
        return lambda rows: stop.set() if answers.batches >= count else None

    stop, answers = threading.Event(), Answers()
    for count in (1, 3):
        answers._on_batch = stop_after(count)
        run(stream(table), answers, tmp_path / "kept", rows=7, stop=stop, trigger="as-it-comes")
        assert sum(row[1] for row in answers.rows) == 7 * count
        table.execute(f"DELETE FROM t WHERE id = {count}", f"INSERT INTO t VALUES ({100 + count}, 5, 'x')")
    run(stream(table), answers, tmp_path / "kept", rows=7)
    assert answers.rows == Counter(table.execute("SELECT v, COUNT(*) FROM t GROUP BY v"))


def test_values_that_a_column_cannot_have(table: PostgresServer, tmp_path: Path) -> None:
    table.execute("CREATE TABLE d (id int PRIMARY KEY, day date)", "ALTER PUBLICATION squall ADD TABLE d")
    table.execute("INSERT INTO d VALUES (1, 'infinity'), (2, '2024-01-01')")
    text = f"CREATE STREAM d USING postgres OPTIONS (url '{table.url}'); SELECT id, day FROM d;"
    assert "column \"day\": 'infinity' is not a valid DATE" in refused(text)
    skipping = text.replace("')", "', on_error 'skip')")
    answers = run(skipping, checkpoint=tmp_path / "kept")
    table.execute("INSERT INTO d VALUES (3, '-infinity'), (4, '2024-01-02')")
    assert [row[0] for row in sorted(run(skipping, answers, tmp_path / "kept").rows)] == [2, 4]


def test_publications_of_some_rows_and_columns(table: PostgresServer, tmp_path: Path) -> None:
    table.execute("CREATE PUBLICATION few FOR TABLE t (id, v) WHERE (id > 10)")
    text = stream(table, "(id INT PRIMARY KEY, v INT)", ", publication.name 'few'", "SELECT COUNT(*) AS n FROM t")
    answers = run(text, checkpoint=tmp_path / "kept")
    assert answers.rows == Counter([(20,)])
    table.execute("INSERT INTO t VALUES (5000, 1, 'x')", "UPDATE t SET v = 9 WHERE id < 15")
    assert run(text, answers, tmp_path / "kept").rows == Counter([(21,)])


@pytest.mark.parametrize("what", ["copy", "changes"])
def fault_a_full_disk_under_the_checkpoint(table: PostgresServer, tmp_path: Path, what: str) -> None:
    """One line, of the copy or of a batch of changes; the same command goes on when there is room."""
    query = "SELECT w, COUNT(*) AS n FROM t GROUP BY w"
    of = f"USING postgres OPTIONS (url '{table.url}'"
    (tmp_path / "q.sql").write_text(f"CREATE STREAM t {of}); CREATE SINK s {of}, mode 'upsert') AS {query};")
    more = "INSERT INTO t SELECT g, 0, md5(g::text) FROM generate_series(31, 20000) g"
    command = [sys.executable, "-m", "squallpy.terminal", "run", "q.sql", "--backend", "local", "--checkpoint", "kept"]
    command += ["--trigger", "available-now", "--batch-rows", "2000"]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    def end(limits: Callable[[], None] | None = None) -> tuple[int, str]:
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        ended = subprocess.run(
            command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True, timeout=120, preexec_fn=limits
        )
        return ended.returncode, ended.stderr

    if what == "changes":
        assert end() == (0, "")
    table.execute(more)
    code, said = end(limit)
    assert code == 2 and said.startswith("SQ6006 ") and said.count("\n") == 1, said
    assert "cannot write state to " in said and "the same command resumes when there is room" in said
    assert end() == (0, "")
    assert sorted(table.execute("SELECT w, n FROM s")) == sorted(table.execute(query))
