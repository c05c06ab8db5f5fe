"""Views read by Flight SQL, with the driver of ADBC and with Arrow's client."""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import flight

import squallpy
from squallpy import Session, SquallError
from squallpy.base.addresses import Address
from squallpy.flight.messages import CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetXdbcTypeInfo, pack
from squallpy.flight.server import FlightServer
from squallpy.flight.sql_info import FACTS
from squallpy.terminal.serve_command import serve

dbapi = pytest.importorskip("adbc_driver_flightsql.dbapi")

TYPES = {
    "i": "INT", "b": "BIGINT", "d": "DECIMAL(12,2)", "w": "DECIMAL(38,6)", "x": "DOUBLE", "s": "VARCHAR", "day": "DATE",
    "at": "TIMESTAMP", "yes": "BOOLEAN",
}  # fmt: skip
VALUES: dict[str, Any] = {
    "i": -1, "b": 2**62, "d": Decimal("-1.50"), "w": Decimal("12345678901234567890.123456"), "x": 0.1, "s": "é\n",
    "day": date(1969, 12, 31), "at": datetime(2026, 1, 1, 10, 0, 0, 500_000), "yes": True,
}  # fmt: skip
ARROW = [
    "int32",
    "int64",
    "decimal128(12, 2)",
    "decimal128(38, 6)",
    "double",
    "string",
    "date32[day]",
    "timestamp[us]",
    "bool",
]


@pytest.fixture(scope="module")
def s() -> Iterator[Session]:
    with squallpy.connect() as session:
        session.stream("typed", schema=TYPES)
        session.stream("lists", schema={"numbers": "ARRAY<INT>"})
        session.stream("changing", schema={"k": "INT", "amount": "INT"})
        session.sql("""
            CREATE MATERIALIZED VIEW all_types AS SELECT * FROM typed;
            CREATE MATERIALIZED VIEW nested AS SELECT numbers FROM lists;
            CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(amount) AS balance FROM changing;
            CREATE MATERIALIZED VIEW groups AS SELECT k, COUNT(*) AS n FROM changing GROUP BY k;
            CREATE VIEW few AS SELECT i, s FROM all_types WHERE i < 0;
            CREATE VIEW of_stream AS SELECT i FROM typed;
            CREATE MATERIALIZED VIEW sales.orders AS SELECT i FROM typed;
        """)
        session.push("typed", [VALUES, dict.fromkeys(TYPES)])
        session.push("lists", pa.table({"numbers": [[-1]]}))
        session.run_until_caught_up()
        yield session


@pytest.fixture(scope="module")
def server(s: Session) -> FlightServer:
    return s.serve_flight("127.0.0.1:0")


@pytest.fixture
def cursor(server: FlightServer) -> Iterator[Any]:
    with dbapi.connect(server.url, autocommit=True) as connection, connection.cursor() as cursor:
        yield cursor


def test_each_type_is_read(cursor: Any) -> None:
    cursor.execute("SELECT * FROM all_types ORDER BY i NULLS LAST")
    table = cursor.fetch_arrow_table()
    assert table.to_pylist() == [VALUES, dict.fromkeys(TYPES)]
    assert [str(kind) for kind in table.schema.types] == ARROW
    names = [field.metadata[b"ARROW:FLIGHT:SQL:TYPE_NAME"].decode() for field in table.schema]
    assert names == [*TYPES.values()]
    cursor.execute("SELECT numbers FROM nested")
    assert cursor.fetchall() == [("[-1]",)], "nested values are JSON"


def test_a_snapshot_may_be_any_select_over_views(cursor: Any) -> None:
    cursor.execute("WITH t AS (SELECT s FROM few) SELECT COUNT(*) AS n, MAX(s) AS s FROM t")
    assert cursor.fetchall() == [(1, "é\n")]
    cursor.execute("SELECT i FROM main.few WHERE FALSE")
    assert cursor.fetchall() == []
    cursor.execute("SELECT i FROM sales.orders ORDER BY i NULLS FIRST")
    assert cursor.fetchall() == [(None,), (-1,)]


REFUSED = {
    "SELECT nam FROM few": 'SQ2003 query:1:8: unknown column "nam"',
    "SELECT *\nFROM fw": 'SQ2001 query:2:6: unknown table "fw", did you mean "few"?\n    FROM fw\n         ^^',
    "SELECT i FROM typed": "SQ3001 query:1:1: typed is a stream",
    "SELECT i FROM of_stream": "SQ3001 query:1:1: typed is a stream",
    "CREATE OR REPLACE MATERIALIZED VIEW few AS SELECT 1": "SQ3001 CREATE OR REPLACE MATERIALIZED VIEW is not allowed",
    "create temp view few as select 1": "SQ3001 CREATE TEMP VIEW is not allowed over Flight SQL",
    "drop view few": "SQ3001 DROP VIEW is not allowed over Flight SQL, which only reads, send a SELECT over views",
    "INSERT INTO few VALUES (1)": "SQ3001 INSERT is not allowed",
    "SET batch_rows = 1": "SQ3001 SET is not allowed",
    "-- a remark\nDROP VIEW few": "SQ3001 Flight SQL takes one statement at a time, which is a query",
    "SELECT 1; SELECT 2": "SQ3001 Flight SQL takes one statement at a time",
    "SELECT * FROM few WHERE i = ?": "SQ3001 query:1:25: a parameter is not supported",
    "SELECT CAST(s AS INT) AS i FROM few": "SQ5002",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def fault_mistakes_come_with_their_code_and_place(cursor: Any, text: str) -> None:
    with pytest.raises(dbapi.Error) as caught:
        cursor.execute(text)
        cursor.fetchall()
    assert REFUSED[text] in str(caught.value) and "Traceback" not in str(caught.value)


def fault_updates_are_refused(cursor: Any) -> None:
    with pytest.raises(dbapi.Error, match="SQ3001 DROP VIEW is not allowed"):
        cursor.executescript("DROP VIEW few")
    with pytest.raises(dbapi.Error, match="SQ3001 a SELECT is no update"):
        cursor.executescript("SELECT 1")
    with pytest.raises(dbapi.Error, match="SQ3001 CommandStatementIngest of Flight SQL is not supported"):
        cursor.adbc_ingest("few", pa.table({"i": [1]}), "append")


def test_what_there_is_to_read_is_listed(server: FlightServer) -> None:
    with dbapi.connect(server.url, autocommit=True) as connection:
        assert connection.adbc_get_table_types() == ["TABLE", "VIEW"]
        assert connection.adbc_get_info()["vendor_name"] == "squallpy"
        (catalog,) = connection.adbc_get_objects(depth="all").read_all().to_pylist()
        found = {
            (schema["db_schema_name"], table["table_name"]): [c["xdbc_type_name"] for c in table["table_columns"]]
            for schema in catalog["catalog_db_schemas"]
            for table in schema["db_schema_tables"]
        }
        assert catalog["catalog_name"] == "squallpy"
        assert found.keys() == {
            ("main", name) for name in ("all_types", "few", "groups", "nested", "total")
        } | {("sales", "orders")}  # fmt: skip
        assert found["main", "all_types"] == [*TYPES.values()]
        some = connection.adbc_get_objects(depth="tables", db_schema_filter="MA%", table_name_filter=r"all\_t_pes")
        (schema,) = some.read_all()["catalog_db_schemas"][0].as_py()
        assert [table["table_name"] for table in schema["db_schema_tables"]] == ["all_types"]
        assert connection.adbc_get_table_schema("few", db_schema_filter="main").names == ["i", "s"]
        none = connection.adbc_get_objects(
            depth="tables", catalog_filter="other", table_types_filter=["TABLE"]
        ).read_all()
        assert none.num_rows == 0


def test_facts_and_keys_are_answered_to_those_who_ask(server: FlightServer) -> None:
    def ask(command: Any) -> pa.Table:
        info = client.get_flight_info(flight.FlightDescriptor.for_command(pack(command)))
        table = client.do_get(info.endpoints[0].ticket).read_all()
        assert info.schema == table.schema
        return table

    with flight.connect(server.url) as client:
        facts = {row["info_name"]: row["value"] for row in ask(CommandGetSqlInfo()).to_pylist()}
        assert facts.keys() == FACTS.keys() and facts[504] == "`" and facts[3] is True and facts[538] == 15
        assert ask(CommandGetPrimaryKeys()).num_rows == ask(CommandGetXdbcTypeInfo()).num_rows == 0
        assert {action.type for action in client.list_actions()} == {
            "CreatePreparedStatement",
            "ClosePreparedStatement",
        }
        with pytest.raises(flight.FlightServerError, match="SQ3001 this is no message of Flight SQL"):
            client.get_flight_info(flight.FlightDescriptor.for_command(b"SELECT 1"))
        with pytest.raises(flight.FlightServerError, match="SQ3001 BeginTransaction of Flight SQL is not supported"):
            [*client.do_action(flight.Action("BeginTransaction", b""))]


def test_large_answers_come_in_small_messages(s: Session, cursor: Any) -> None:
    s.sql("CREATE MATERIALIZED VIEW wide AS SELECT k, REPEAT('x', 1000) AS filler FROM changing")
    try:
        s.push("changing", {"k": [*range(20_000)], "amount": [0] * 20_000})
        s.run_until_caught_up()
        cursor.execute("SELECT k, filler FROM wide")  # NB: 20 MB, and the driver takes 16 at a time
        assert cursor.fetch_arrow_table().num_rows == 20_000
    finally:
        s.push("changing", {"k": [*range(20_000)], "amount": [0] * 20_000}, "-")
        s.run_until_caught_up()
        s.view("wide").drop()


def test_two_clients_see_whole_batches_while_batches_go_on(s: Session, server: FlightServer) -> None:
    query = "SELECT t.n, t.balance, g.n FROM total AS t CROSS JOIN (SELECT SUM(n) AS n FROM groups) AS g"
    seen = list[tuple[int, int, int]]()

    def read() -> None:
        with dbapi.connect(server.url, autocommit=True) as connection, connection.cursor() as cursor:
            for _ in range(15):
                cursor.execute(query)
                seen.extend(cursor.fetchall())

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    batches = 0
    while any(reader.is_alive() for reader in readers):
        s.push("changing", [{"k": batches % 3, "amount": 5}, {"k": 7, "amount": -5}])
        s.step()
        batches += 1
    assert len(seen) == 30 and len({n for n, _, _ in seen}) > 1, "batches went on"
    assert all(n % 2 == 0 and (balance or 0) == 0 and n == (in_groups or 0) for n, balance, in_groups in seen)


def test_others_need_a_token(s: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUALL_FLIGHT_TOKEN", "se:cret")
    open_to_all = s.serve_flight("0.0.0.0:0")
    url = open_to_all.url.replace("localhost", "127.0.0.1")
    assert open_to_all.token == "se:cret"
    for options in (
        {},
        {"adbc.flight.sql.authorization_header": "Bearer other"},
        {"username": "a", "password": "b"},
        {"adbc.flight.sql.authorization_header": "Basic x"},
    ):
        with (
            pytest.raises(dbapi.Error, match=r"(?i)unauth"),
            dbapi.connect(url, options, autocommit=True) as connection,
        ):
            connection.cursor().execute("SELECT i FROM few")
    for right in (
        {"adbc.flight.sql.authorization_header": "Bearer se:cret"},
        {"username": "any", "password": "se:cret"},
    ):
        with dbapi.connect(url, right, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT i FROM few")
            assert cursor.fetchall() == [(-1,)]
    open_to_all.close()


def test_a_user_may_log_in_where_no_token_is_needed(server: FlightServer) -> None:
    for options in ({"username": "", "password": ""}, {"username": "me", "password": "x"}):
        with dbapi.connect(server.url, options, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT i FROM few")
            assert cursor.fetchall() == [(-1,)]


def test_what_another_process_has_is_served(tmp_path: Path) -> None:
    with squallpy.connect(checkpoint=tmp_path) as host, squallpy.connect(checkpoint=tmp_path) as attached:
        rows = host.stream("r", schema={"a": "INT"})
        host.sql("CREATE MATERIALIZED VIEW v AS SELECT a FROM r")
        rows.push({"a": [1]})
        host.step()
        url = attached.serve_flight("127.0.0.1:0").url
        with dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT a FROM v")
            assert cursor.fetchall() == [(1,)]
            (catalog,) = connection.adbc_get_objects(depth="all").read_all().to_pylist()
            assert catalog["catalog_db_schemas"][0]["db_schema_tables"][0]["table_columns"][0]["column_name"] == "a"
            with pytest.raises(dbapi.Error, match="SQ2003 query:1:8: unknown column"):
                cursor.execute("SELECT b FROM v")


def fault_a_port_that_is_taken_and_words_that_are_no_address(s: Session, server: FlightServer) -> None:
    taken = server.url.removeprefix("grpc://")
    with pytest.raises(SquallError, match=f"SQ7005 --flight cannot listen on {taken}: address already in use"):
        s.serve_flight(taken)
    with pytest.raises(SquallError, match='SQ7003 "nowhere" is no address'):
        s.serve_flight("nowhere")


def test_serve_keeps_a_checkpoint_fresh_until_it_is_terminated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.csv").write_text("1\n2\n")
    script = tmp_path / "q.sql"
    script.write_text("CREATE STREAM r (a INT) USING csv OPTIONS (path 'r.csv');\nSELECT SUM(a) AS total FROM r;")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    found = list[Any]()

    def read() -> None:
        try:
            with dbapi.connect(f"grpc://127.0.0.1:{port}", autocommit=True) as connection:
                cursor = connection.cursor()
                while not found or found[-1] != [(3,)]:
                    try:
                        cursor.execute("SELECT total FROM query1")
                    except dbapi.Error as error:
                        assert "refused" in str(error)
                        continue
                    found.append(cursor.fetchall())
                cursor.close()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    reader = threading.Thread(target=read)
    reader.start()
    assert serve(script, None, Address("127.0.0.1", port), str(tmp_path / "state"), ()) == 0
    reader.join()
    assert found[-1] == [(3,)]
    assert f"Flight SQL at grpc://127.0.0.1:{port}\n" in capsys.readouterr().err
    monkeypatch.chdir(tmp_path)
    with squallpy.connect(checkpoint="state") as session:
        assert session.view("query1").to_pylist() == [{"total": 3}]


FAULTS: dict[str, tuple[Callable[[], object], str]] = {
    "nothing": (lambda: serve(None, None, Address("127.0.0.1", 0), None, ()), "SQ7004 there is no session to serve"),
    "a failing batch": (
        lambda: serve(
            Path("<command>"),
            "CREATE STREAM r (a VARCHAR) USING csv OPTIONS (path '" + __file__ + "');"
            "CREATE MATERIALIZED VIEW v AS SELECT CAST(a AS INT) AS i FROM r",
            Address("127.0.0.1", 0), None, (),
        ),
        "SQ",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def fault_serve_ends_with_one_line(fault: str) -> None:
    act, line = FAULTS[fault]
    with ExitStack() as ended:
        caught = ended.enter_context(pytest.raises(SquallError))
        act()
    assert str(caught.value).startswith(line)
