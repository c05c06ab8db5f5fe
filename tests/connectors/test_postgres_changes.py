"""Random changes of PostgreSQL's tables: what is kept fresh after each batch is what the server answers."""

import random
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from squallpy.base.errors import SquallError
from tests.connectors.runs import Answers, Row, run
from tests.connectors.servers import PostgresServer
from tests.marks import long

TABLES = (
    "CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, about text, born date)",
    "ALTER TABLE customers ALTER COLUMN about SET STORAGE EXTERNAL",
    "CREATE TABLE orders (a int, b int, customer int, total numeric(12,2), moment timestamptz, paid boolean,"
    " PRIMARY KEY (b, a))",
    "CREATE TABLE visits (customer int, seconds double precision)",
    "ALTER TABLE visits REPLICA IDENTITY FULL",
    "CREATE PUBLICATION squall FOR TABLE customers, orders, visits",
)
QUERY = """
SELECT c.name AS name, COUNT(*) AS n, SUM(o.total) AS total, MAX(o.moment) AS latest, MAX(LENGTH(c.about)) AS about,
    SUM(CASE WHEN o.paid THEN 1 ELSE 0 END) AS paid, MIN(v.seconds) AS seconds
FROM customers c JOIN orders o ON o.customer = c.id JOIN visits v ON v.customer = c.id GROUP BY c.name"""


def script(url: str, columns: bool = False) -> str:
    """Write a script over the tables, with a sink."""
    declared = {
        "customers": "(id INT PRIMARY KEY, name VARCHAR, about VARCHAR)",
        "orders": "(a INT, b INT, customer INT, total DECIMAL(12,2), moment TIMESTAMP, paid BOOLEAN,"
        " PRIMARY KEY (a, b))",
        "visits": "(customer INT, seconds DOUBLE)",
    }
    streams = (
        f"CREATE STREAM {name} {text if columns else ''} USING postgres OPTIONS (url '{url}');"
        for name, text in declared.items()
    )
    return (
        "".join(streams)
        + f"""
CREATE SINK totals USING postgres OPTIONS (url '{url}', mode 'upsert') AS {QUERY};
{QUERY};"""
    )


class Changes:
    """Random statements over the tables."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)

    def statement(self) -> str:
        draw = self.draw
        customer, a, b = draw.randrange(6), draw.randrange(4), draw.randrange(4)
        about = draw.choice(["NULL", "''", f"repeat('{draw.randrange(10)}', {draw.choice([3, 5000])})"])
        if draw.random() < 0.04:
            return f"TRUNCATE {draw.choice(['customers', 'orders', 'customers, orders'])}"
        total, moment = (
            draw.randrange(10**6) / 100,
            f"timestamptz '2024-01-01 00:00:00+02' + {draw.random()} * interval '9 days'",
        )
        return draw.choice([
            f"INSERT INTO customers VALUES ({customer}, 'n{draw.randrange(3)}', {about}, NULL) ON CONFLICT DO NOTHING",
            f"UPDATE customers SET name = 'n{draw.randrange(3)}' WHERE id = {customer}",
            f"UPDATE customers SET about = {about} WHERE id = {customer}",
            f"UPDATE customers SET id = {10 + customer}, about = 'moved' WHERE id = {customer} AND NOT EXISTS"
            f" (SELECT 1 FROM customers WHERE id = {10 + customer})",
            f"DELETE FROM customers WHERE id = {customer + draw.choice([0, 10])}",
            f"INSERT INTO orders VALUES ({a}, {b}, {customer}, {total}, {moment}, {draw.choice(['true', 'NULL'])})"
            " ON CONFLICT (a, b) DO UPDATE SET total = excluded.total, moment = excluded.moment",
            f"UPDATE orders SET a = a + 10 WHERE a = {a} AND b = {b} AND NOT EXISTS"
            f" (SELECT 1 FROM orders WHERE a = {a} + 10)",
            f"DELETE FROM orders WHERE a = {a + draw.choice([0, 10])}",
            f"UPDATE orders SET customer = {customer}",
            f"INSERT INTO visits SELECT {customer}, g / 4.0 FROM generate_series(1, {draw.randrange(4)}) g",
            f"UPDATE visits SET seconds = seconds * 1.5 WHERE customer = {customer}",
            f"DELETE FROM visits WHERE customer = {customer}",
        ])  # fmt: skip

    def apply(self, server: PostgresServer) -> None:
        """Commit a few statements, or roll them back."""
        statements = [self.statement() for _ in range(self.draw.randrange(1, 6))]
        server.commit(statements, rolls_back=self.draw.random() < 0.2)


def answer(server: PostgresServer) -> Counter[Row]:
    """Ask the server."""
    text = QUERY.replace("MAX(o.moment)", "MAX(o.moment AT TIME ZONE 'UTC')")
    return Counter(server.execute(text))


def answer_of_duckdb(server: PostgresServer) -> Counter[Row]:
    """Ask DuckDB over the rows of the server."""
    database = duckdb.connect()
    database.execute("CREATE TABLE customers (id INT, name VARCHAR, about VARCHAR, born DATE)")
    database.execute(
        "CREATE TABLE orders (a INT, b INT, customer INT, total DECIMAL(12,2), moment TIMESTAMP, paid BOOLEAN)"
    )
    database.execute("CREATE TABLE visits (customer INT, seconds DOUBLE)")
    for name, columns in (
        ("customers", "*"),
        ("orders", "a, b, customer, total, moment AT TIME ZONE 'UTC', paid"),
        ("visits", "*"),
    ):
        rows = server.execute(f"SELECT {columns} FROM {name}")
        if rows:
            database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return Counter(database.execute(QUERY).fetchall())


def changes_are_followed(server: PostgresServer, folder: Path, seed: int, rounds: int, backend: str = "local") -> None:
    """Change tables in rounds, and read what has come after each, resumed by a checkpoint."""
    server.execute(*TABLES)
    changes, text = Changes(seed), script(server.url, columns=seed % 2 == 0)
    for _ in range(10):
        changes.apply(server)
    told, at, answers = [answer(server)], 0, Answers()

    def compare(rows: Counter[Row]) -> None:
        """Check that a batch ends where a transaction does, no earlier than the one before."""
        nonlocal at
        at = next((i for i in range(at, len(told)) if told[i] == rows), -1)
        assert at >= 0, f"{rows} is none of {told}"

    run(text, answers, folder / "kept", backend=backend)
    assert answers.rows == told[0]
    answers._on_batch = compare
    for _ in range(rounds):
        for _ in range(changes.draw.randrange(8)):
            changes.apply(server)
            told.append(answer(server))
        run(text, answers, folder / "kept", rows=changes.draw.choice([1, 5, 1000]), backend=backend)
        assert answers.rows == told[-1] == answer_of_duckdb(server)
        written = server.execute("SELECT name, n, total, latest, about, paid, seconds FROM totals")
        assert Counter(written) == told[-1]
        told, at = told[-1:], 0


@pytest.mark.parametrize("seed", [0, *map(long, range(1, 20))])
def oracle_random_changes(postgres: PostgresServer, tmp_path: Path, seed: int) -> None:
    changes_are_followed(postgres, tmp_path, seed, rounds=4)


@pytest.mark.connectors
@pytest.mark.spark
def oracle_random_changes_on_spark(postgres: PostgresServer, tmp_path: Path) -> None:
    changes_are_followed(postgres, tmp_path, 7, rounds=2, backend="spark")
    text = script(postgres.url, columns=False).replace("mode 'upsert'", "mode 'upsert', existing 'keep'")
    with pytest.raises(SquallError, match=r'SQ4009 script.sql:.*"squall" of .* is there already, of another run'):
        run(text, checkpoint=tmp_path / "other", backend="spark")
    postgres.drop_slot()
    with pytest.raises(SquallError, match=r'SQ4009 script.sql:.*"squall" of .* is gone: changes since .* are lost'):
        run(script(postgres.url), checkpoint=tmp_path / "kept", backend="spark")


def test_values_of_all_types(postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.execute(
        "CREATE TABLE t (id bigint PRIMARY KEY, i smallint, n numeric, d numeric(38,10), f real, g double precision,"
        " b boolean, c char(3), v varchar(9), t time, day date, at timestamp, u uuid, j jsonb, a int[], x bytea)",
        "CREATE PUBLICATION squall FOR TABLE t",
        "INSERT INTO t VALUES (1, -5, 1.5, 12345678901234567890.0123456789, 0.1, '-Infinity', true, 'ab', 'x', '10:00',"
        " '1999-12-31', '0001-01-01 00:00:00.000001', '00000000-0000-0000-0000-000000000007', '{\"a\": 1}',"
        " '{1,NULL}', '\\x00ff')",
        "INSERT INTO t (id) VALUES (2)",
    )
    text = f"CREATE STREAM t USING postgres OPTIONS (url '{postgres.url}'); SELECT * FROM t;"
    answers = run(text, checkpoint=tmp_path / "kept")
    before = answers.rows.copy()
    postgres.execute("UPDATE t SET id = id + 10")
    run(text, answers, tmp_path / "kept")
    found, empty = sorted(answers.rows)
    assert {(row[0] + 10, *row[1:]) for row in before} == {found, empty} and set(empty[1:]) == {None}
    assert found[1:4] == (-5, Decimal("1.500000000"), Decimal("12345678901234567890.0123456789"))
    assert found[4:10] == (0.1, float("-inf"), True, "ab ", "x", "10:00:00")
    assert found[12:] == ("00000000-0000-0000-0000-000000000007", '{"a": 1}', "{1,NULL}", "\\x00ff")
