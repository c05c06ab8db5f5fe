"""Scripts → statements, and what is wrong with them."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, DOUBLE, INT, TIMESTAMP, VARCHAR, Type, decimal
from squallpy.catalog.relation import Field
from squallpy.frontend.script import parse_script
from squallpy.frontend.statements import CreateRelation, CreateView, Select
from squallpy.frontend.string_literals import unquote


def declared(text: str) -> CreateRelation:
    (statement,) = parse_script(text, "q.sql")
    assert isinstance(statement, CreateRelation)
    return statement


def test_a_stream_with_everything() -> None:
    relation = declared("""
        create stream `Bids` (  -- a comment; with a semicolon
            id BIGINT, price numeric(12, 2) NOT NULL, at TIMESTAMP, primary_x char(3), y double precision, q INT NULL,
            PRIMARY KEY (id, at)
        ) USING CSV OPTIONS (Path 'x;y', header true, sep = '|', op '__op', null 'N''A')
        TIMESTAMP BY at DELAY 5 SEC;
    """).relation
    assert (relation.name, relation.stream, relation.format, relation.op) == ("Bids", True, "csv", "__op")
    assert relation.fields == (
        Field("id", BIGINT, False), Field("price", decimal(12, 2), False), Field("at", TIMESTAMP, False),
        Field("primary_x", VARCHAR), Field("y", DOUBLE), Field("q", INT),
    )  # fmt: skip
    assert relation.options == {"path": "x;y", "header": "true", "delimiter": "|", "op": "__op", "null": "N'A"}
    assert (relation.primary_key, relation.timestamp, relation.delay_micros) == (("id", "at"), "at", 5_000_000)


def test_a_table_without_columns() -> None:
    relation = declared("CREATE TABLE nation USING parquet OPTIONS (path 'n.parquet')").relation
    assert (relation.stream, relation.fields, relation.timestamp) == (False, (), None)


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("TIMESTAMPTZ", TIMESTAMP), ("timestamp_ltz", TIMESTAMP), ("TIMESTAMP WITH TIME ZONE", TIMESTAMP),
        ("timestamp\n  with local time zone", TIMESTAMP), ("TIMESTAMP WITHOUT TIME ZONE", TIMESTAMP),
        ("BINARY", VARCHAR), ("varbinary(16)", VARCHAR), ("BYTEA", VARCHAR), ("uuid", VARCHAR),
    ],
)  # fmt: skip
def test_types_of_other_systems(name: str, type: Type) -> None:
    fields = declared(f"CREATE STREAM z (at {name} NOT NULL, b {name}) USING csv OPTIONS (path 'x')").relation.fields
    assert fields == (Field("at", type, False), Field("b", type))


def test_statements_are_split_outside_strings_and_comments() -> None:
    statements = parse_script("SELECT ';' FROM r /* ; ' */; ;CREATE VIEW v (p) AS -- ;\n (SELECT a FROM r);", "q.sql")
    assert [type(s) for s in statements] == [Select, CreateView]
    assert isinstance(statements[1], CreateView)
    assert (statements[1].name, statements[1].columns, statements[1].query.text) == ("v", ("p",), "(SELECT a FROM r)")


@pytest.mark.parametrize("kind", ["TEMP", "temporary", "OR REPLACE TEMP", "OR REPLACE TEMPORARY"])
def test_temporary_views_of_other_systems_are_views(kind: str) -> None:
    [created] = parse_script(f"CREATE {kind} VIEW v AS SELECT a FROM r", "q.sql")
    assert isinstance(created, CreateView)
    assert (created.name, created.query.text, created.is_materialized) == ("v", "SELECT a FROM r", False)


def test_strings() -> None:
    assert unquote(r"'it''s'") == "it's"
    assert unquote(r"'a\tb\|'") == "a\tb|"


ERRORS = {
    "CREATE STREEM x": 'SQ1001 q.sql:1:8: unexpected "STREEM", expected '
    "FUNCTION or MATERIALIZED or MATRIX or OR or SINK or STREAM or TABLE or VARIABLE or VIEW",
    "CREATE TABLE z (a INT)": "SQ1001 q.sql:1:23: the script ends too early, expected USING",
    "SELECT a FROM\n  r WHERE WHERE x": 'SQ1001 q.sql:2:11: unexpected "WHERE"',
    "SELECT a,\n  b, FROM r": "SQ1001 q.sql:2:4: a comma that nothing follows, remove it",
    "SELECT `` FROM r": "SQ1001 q.sql:1:8: a name in quotes that is empty, write a name between them",
    "SELECT a AS `` FROM r": "SQ1001 q.sql:1:13: a name in quotes that is empty, write a name between them",
    "SELECT a FROM `` b": "SQ1001 q.sql:1:15: a name in quotes that is empty, write a name between them",
    "SELECT CAST(a AS DECIMAL(8, `` )) FROM r": "SQ1001 q.sql:1:29: a name in quotes that is empty",
    "SELECT a FROM r ` `": "SQ1001 q.sql:1:17: a name in quotes that is empty, write a name between them",
    "SELECT 'a FROM r": "SQ1001 q.sql:1:8: a ' that is not closed",
    "SELECT a FROM r WHERE": "SQ1001 q.sql:1:17: the query ends too early",
    "SELECT a FROM r PIVOT (SUM(a))": "SQ1001 q.sql:1:30: the query ends too early, expecting FOR",
    "SELECT a b c FROM r": 'SQ1001 q.sql:1:12: unexpected "c"',
    "SELECT SUBSTRING(s FROM FOR 3) FROM r": 'SQ1001 q.sql:1:25: unexpected "FOR", expected an expression',
    "TRUNCATE TABLE x": "SQ3001 q.sql:1:1: TRUNCATE is not supported",
    "CREATE TABLE z USING orc OPTIONS (path 'x')": (
        'SQ7002 q.sql:1:22: unknown format "orc", known: avro, csv, delta, http, iceberg, json, kafka'
    ),
    "CREATE STREAM z USING csv OPTIONS (pth 'x')": 'SQ7002 q.sql:1:36: unknown option "pth", did you mean "path"?',
    "CREATE STREAM z USING csv OPTIONS (path 'x', header 'y')": 'SQ7002 q.sql:1:46: option "header" cannot be "y"',
    "CREATE STREAM z USING csv OPTIONS (path 'x', sep ',', delimiter ',')": "SQ7002 q.sql:1:55: option",
    "CREATE STREAM z USING csv": 'SQ7002 q.sql:1:15: "z" has no path',
    "CREATE TABLE z USING csv OPTIONS (path 'x', op 'o')": "SQ7002 q.sql:1:14: a TABLE does not change",
    "CREATE STREAM z (a INT, A INT) USING csv OPTIONS (path 'x')": 'SQ2007 q.sql:1:25: column "A" is declared twice',
    "CREATE STREAM z (a INT WITH TIME ZONE) USING csv OPTIONS (path 'x')": 'SQ1001 q.sql:1:24: unexpected "WITH"',
    "CREATE STREAM z (a INTT) USING csv OPTIONS (path 'x')": 'SQ2008 q.sql:1:20: unknown type "INTT"',
    "CREATE STREAM z (a DECIMAL(50,2)) USING csv OPTIONS (path 'x')": "SQ2005 q.sql:1:20: DECIMAL(50,2) needs",
    "CREATE STREAM z (a INT, PRIMARY KEY (b)) USING csv OPTIONS (path 'x')": 'SQ2003 q.sql:1:38: unknown column "b"',
    "CREATE STREAM z (a INT, FOREIGN KEY (b) REFERENCES q(b)) USING csv OPTIONS (path 'x')": (
        'SQ2003 q.sql:1:41: unknown column "b"'
    ),
    "CREATE STREAM z (a INT) USING csv OPTIONS (path 'x') TIMESTAMP BY a": "SQ2005 q.sql:1:67: TIMESTAMP BY needs",
    "CREATE STREAM z (a DATE) USING csv OPTIONS (path 'x') TIMESTAMP BY b": 'SQ2003 q.sql:1:68: unknown column "b"',
    "CREATE STREAM z USING csv OPTIONS (path 'x', changelog 'upser')": (
        'SQ7002 q.sql:1:46: option "changelog" cannot be "upser", did you mean "upsert"?'
    ),
    "CREATE STREAM z USING csv OPTIONS (path 'x', changelog 'op', op 'o')": (
        "SQ7002 q.sql:1:15: changelog 'op' and op 'o' both say how rows tell changes, leave one of them out"
    ),
    "CREATE STREAM z USING csv OPTIONS (path 'x', changelog 'append', op 'o')": "SQ7002 q.sql:1:15: changelog 'append'",
    "CREATE STREAM z USING csv OPTIONS (path 'x', tombstone 'o')": "SQ7002 q.sql:1:15: tombstone is for upserts",
    "CREATE STREAM z (a INT) USING csv OPTIONS (path 'x', changelog 'upsert')": (
        "SQ7002 q.sql:1:15: changelog 'upsert' needs a PRIMARY KEY, by which rows replace each other, declare one"
    ),
    "CREATE TABLE z (a INT PRIMARY KEY) USING csv OPTIONS (path 'x', changelog 'upsert')": (
        "SQ7002 q.sql:1:14: a TABLE does not change and has no changelog"
    ),
    "CREATE STREAM z (a INT PRIMARY KEY) USING csv OPTIONS (path 'x', changelog 'upsert', tombstone 'A')": (
        'SQ2007 q.sql:1:15: "A" is the tombstone column and cannot be declared as well'
    ),
    "CREATE STREAM z (a INT) USING csv OPTIONS (path 'x', changelog 'debezium')": (
        "SQ7002 q.sql:1:15: changelog 'debezium' is for json, not for csv"
    ),
    "CREATE STREAM z USING json OPTIONS (path 'x', changelog 'debezium')": (
        "SQ7002 q.sql:1:15: changelog 'debezium' needs columns"
    ),
    "CREATE STREAM z USING csv OPTIONS (path 'x') TIMESTAMP BY a DELAY 5 PARSECS": "SQ1001 q.sql:1:69: unknown unit",
}


@pytest.mark.parametrize("text", ERRORS)
def test_mistakes(text: str) -> None:
    with pytest.raises(SquallError) as caught:
        parse_script(text, "q.sql")
    assert str(caught.value).startswith(ERRORS[text])
