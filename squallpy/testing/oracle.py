"""DuckDB as the oracle: it holds the rows of every stream so far and answers the query from scratch.

    oracle = Oracle(script.relations, "SELECT a, COUNT(*) FROM r GROUP BY a")
    oracle.push("r", table)        rows, with `__mult` if there are deletes
    oracle.answer()                the rows that the query must have now

    answers = Answers(oracle, [{"r": table}])
    answers.after(0)               the same after the first of some batches, found once for all who compare with it

Streams are kept as signed multisets, so that a delete may come before its insert; while one is outstanding, DuckDB has
no such bag and `is_comparable` is False. Of upserts the last row of each key counts, if it is no tombstone.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, count
from typing import Any
from weakref import finalize

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp
from sqlglot.dialects.spark import Spark

from squallpy.catalog.catalog import qualify_name
from squallpy.catalog.relation import Relation
from squallpy.catalog.window_spec import NOW
from squallpy.frontend.dialect import TABLE_FUNCTIONS, WindowParser
from squallpy.frontend.window_clause import with_windows
from squallpy.runtime.evaluate.held_values import held_text
from squallpy.runtime.formats.type_conversion import sql_type
from squallpy.testing.compare_rows import Row
from squallpy.testing.matrix_oracle import CellsFromScratch
from squallpy.testing.model_oracle import ModelFromScratch, replace_models
from squallpy.testing.recursion_oracle import FixpointFromScratch, replace_recursions
from squallpy.testing.session_oracle import replace_sessions
from squallpy.testing.window_oracle import last_rows, replace_windows
from squallpy.testing.windowing_oracle import replace_windowing

MULT, NUMBER = "__mult", "__number"  # of a row in its stream

_TIME = '"time of batch"'  # what NOW() is
_numbers = count()


class Oracle:
    """DuckDB tables with the prefix of each stream, and one query over them."""

    def __init__(
        self,
        relations: Mapping[str, Relation],
        sql: str,
        views: Mapping[str, str] | None = None,
        cells: CellsFromScratch | None = None,
    ) -> None:
        """Create tables and views for a query; `sql` and `views` are in this engine's dialect.

        Views come by name, in the order in which they use each other.
        """
        self._connection = _create_schema(self)
        self._relations, self._pushed, self._deleted = relations, dict[str, int](), set[str]()
        self._connection.execute(f"CREATE TABLE {_TIME} (moment TIMESTAMP)")
        for relation in relations.values():
            self._create(relation)
        self._cells, self._models = cells, dict[str, tuple[str, ModelFromScratch]]()
        for relation in cells.relations() if cells else ():
            columns = ", ".join(f"{quoted(f.name)} {f.type}" for f in relation.fields)
            self._connection.execute(f"CREATE TABLE {quoted(relation.name)} ({columns})")
        self._views, self._fixpoints = dict(views or {}), list[FixpointFromScratch]()
        for name, text in self._views.items():
            self._connection.execute(f"CREATE VIEW {quoted(name)} AS {self._translate(text)}")
        self._query = self._translate(sql)

    def _translate(self, sql: str) -> str:
        """Translate a query of this engine's dialect for DuckDB, and create what it reads there.

        These are views for the contents of its windows, and tables for the rows of its models.
        """
        query = parse_query(sql)
        replace_sessions(query)
        for node in list(query.find_all(exp.Anonymous, exp.Column, exp.CurrentTimestamp, exp.CurrentDate)):
            name = node.name.upper() if isinstance(node, exp.Anonymous | exp.Column) else node.sql()
            if name in ("NOW", "CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP()"):
                node.replace(exp.maybe_parse(f"(SELECT MAX(moment) FROM {_TIME})", dialect="duckdb"))
            elif name in ("CURDATE", "CURRENT_DATE"):
                node.replace(exp.maybe_parse(f"(SELECT MAX(moment)::DATE FROM {_TIME})", dialect="duckdb"))
        for fixpoint in replace_recursions(query, to_duckdb):
            fixpoint.create(self._connection)
            self._fixpoints.append(fixpoint)
        for view, text in replace_windows(query, self._relations, self._views, parse_query):
            self._connection.execute(f"CREATE OR REPLACE VIEW {quoted(view)} AS {text}")
        for model in replace_models(query):
            text = to_duckdb(model.query)
            self._models[model.table] = text, model
            made = (f"NULL::{type} AS {name}" for name, type in model.columns)
            columns = ", ".join((*map(quoted, model.keys), *made))
            self._connection.execute(f"CREATE TABLE {quoted(model.table)} AS SELECT {columns} FROM ({text}) LIMIT 0")
        return to_duckdb(query)

    def _create(self, relation: Relation) -> None:
        columns = ", ".join(f"{quoted(f.name)} {f.type}" for f in relation.fields)
        names = ", ".join(quoted(f.name) for f in relation.fields)
        log, net = quoted(f"log of {relation.name}"), quoted(f"net of {relation.name}")
        self._connection.execute(f"CREATE TABLE {log} ({columns}, {MULT} BIGINT, {NUMBER} BIGINT)")
        last = last_rows(relation)
        self._connection.execute(
            f"CREATE VIEW {net} AS SELECT {names}, SUM({MULT})::BIGINT AS {MULT} FROM {last} GROUP BY {names}"
        )
        self._connection.execute(
            f"CREATE VIEW {quoted(relation.name)} AS SELECT {names} FROM "
            f"(SELECT {names}, UNNEST(RANGE({MULT})) FROM {net} WHERE {MULT} > 0)"
        )

    def push(self, name: str, rows: pa.Table) -> None:
        """Add rows of a relation; those whose `__mult` is −1 take one such row away."""
        if name == NOW.relation:
            ((moment,),) = (rows.columns[0].to_pylist(),)
            self._connection.execute(f"DELETE FROM {_TIME}; INSERT INTO {_TIME} VALUES (?)", [moment])
            return
        relation = self._relations[name]
        if self._cells:
            self._cells.push(name, rows)
        if MULT not in rows.column_names:
            rows = rows.append_column(MULT, pa.array([1] * len(rows), pa.int64()))
        rows = rows.select([*(f.name for f in relation.fields), MULT])
        pushed = self._pushed.get(name, 0)
        self._pushed[name] = pushed + len(rows)
        if not relation.is_keyed and pc.any(pc.less(rows[MULT], 0)).as_py():
            self._deleted.add(name)
        rows = rows.append_column(NUMBER, pa.array(range(pushed, pushed + len(rows)), pa.int64()))
        self._connection.register("pushed", rows)
        self._connection.execute(f"INSERT INTO {quoted(f'log of {name}')} FROM pushed")
        self._connection.unregister("pushed")

    @property
    def is_comparable(self) -> bool:
        """True if every delete so far has met its insert."""
        nets = (quoted(f"net of {name}") for name in self._deleted)
        return all(self._value(f"SELECT COUNT(*) FROM {net} WHERE {MULT} < 0") == 0 for net in nets)

    def _value(self, sql: str) -> Any:
        ((value,),) = self._connection.execute(sql).fetchall()
        return value

    def answer(self) -> list[Row]:
        """Compute the answer from scratch, in DuckDB's order."""
        for name, made in chain(self._cells.tables() if self._cells else (), self._model_tables()):
            self._connection.register("made", made)
            self._connection.execute(f"DELETE FROM {quoted(name)}; INSERT INTO {quoted(name)} FROM made")
            self._connection.unregister("made")
        for fixpoint in self._fixpoints:
            fixpoint.compute(self._connection)
        found = self._connection.execute(self._query)
        has_lists = any(str(type).endswith("[]") for _, type, *_ in found.description or ())
        rows = found.fetchall()
        if not has_lists:
            return rows
        columns = self._connection.sql(self._query).to_arrow_table().columns
        return list(zip(*map(_held_values, columns), strict=True))

    def _model_tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows of each model."""
        for table, (text, model) in self._models.items():
            found = self._connection.execute(text)
            names, types = zip(*((name, str(type).lower()) for name, type, *_ in found.description or ()), strict=True)
            titles = [*model.keys, *(name for name, _ in model.columns)]
            columns = list(zip(*model.rows(names, types, found.fetchall()), strict=True)) or [()] * len(titles)
            yield table, pa.table([pa.array(values) for values in columns], titles)


def _held_values(column: pa.ChunkedArray) -> list[Any]:
    """List values, lists as the JSON that an ARRAY is held as."""
    values: list[Any] = column.to_pylist()
    type = sql_type(column.type)
    if type is None or type.nested is None:
        return values
    return [None if value is None else held_text(value, type) for value in values]


class Answers:
    """Answers of an oracle after each of some batches, each computed when it is first requested.

    `matched` promises that no delete comes before its insert.
    """

    def __init__(self, oracle: Oracle, batches: Sequence[Mapping[str, pa.Table]], matched: bool = False) -> None:
        self._oracle: Oracle | None = oracle
        self._batches, self._matched, self._found = batches, matched, list[list[Row] | None]()

    def after(self, batch: int) -> list[Row] | None:
        """Compute the rows that the query must have after a batch; None while a delete is outstanding."""
        while len(self._found) <= batch:
            assert self._oracle is not None, "there is no such batch"
            for name, rows in self._batches[len(self._found)].items():
                self._oracle.push(name, rows)
            there = self._matched or self._oracle.is_comparable
            self._found.append(self._oracle.answer() if there else None)
            if len(self._found) == len(self._batches):
                self._oracle = None  # and with it all that it holds
        return self._found[batch]


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """Open the one database of all oracles: opening one takes longer than most oracles live."""
    database = duckdb.connect(config={"threads": 1})
    database.execute("SET GLOBAL error_on_division_by_zero = false")  # NULL, as here
    return database


def _create_schema(oracle: Oracle) -> duckdb.DuckDBPyConnection:
    """Connect to a new schema, which is dropped together with the oracle."""
    name = f"oracle_{next(_numbers)}"
    connection = _database().cursor()
    connection.execute(f"CREATE SCHEMA {name}; SET schema = '{name}'")
    finalize(oracle, connection.execute, f"SET schema = 'main'; DROP SCHEMA {name} CASCADE")
    return connection


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def parse_query(sql: str) -> exp.Expr:
    """Parse a query of Spark's SQL, with windows as arguments of its blocks."""
    dialect = _Dialect()
    (query,) = dialect.parser().parse(with_windows(dialect.tokenize(sql), sql), sql)
    assert query is not None
    replace_windowing(query)
    return query


def to_duckdb(sql: str | exp.Expr) -> str:
    """Translate a query to DuckDB's SQL, with TIMESTAMPs that have no time zone."""
    query = parse_query(sql) if isinstance(sql, str) else sql
    for table in query.find_all(exp.Table):
        if table.db:  # an output of a matrix program, or a relation in a schema
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name))
            named = exp.to_identifier(qualify_name(table.db, table.name), quoted=True)
            table.replace(exp.Table(this=named, alias=alias))
    for column in query.find_all(exp.Column):
        column.set("db", None)
    for view in list(query.find_all(exp.Lateral)):
        if view.args.get("outer") and isinstance(view.parent, exp.Select):  # sqlglot forgets about it
            alias = view.args["alias"]
            parts = exp.select(exp.alias_(view.this, alias.columns[0]))
            beside = exp.Lateral(this=exp.Subquery(this=parts), alias=exp.TableAlias(this=alias.this))
            view.parent.append("joins", exp.Join(this=beside, side="LEFT", on=exp.true()))
            view.parent.set("laterals", [v for v in view.parent.args["laterals"] if v is not view])
    for around in reversed(list(query.find_all(exp.Subquery))):  # the inner ones first
        inner = around.this
        if isinstance(inner, exp.Table) and not inner.args.get("joins") and not around.alias:
            around.replace(inner)  # DuckDB refuses a table alone in parentheses
    for type in query.find_all(exp.DataType):
        if type.this in (exp.DataType.Type.TIMESTAMPTZ, exp.DataType.Type.TIMESTAMPLTZ):
            type.set("this", exp.DataType.Type.TIMESTAMP)
    return query.sql(dialect="duckdb")


class _Dialect(Spark):
    class Parser(WindowParser):
        FUNCTIONS = {  # noqa: RUF012 - sqlglot's own way
            **WindowParser.FUNCTIONS,
            "TRUNC": lambda args: (
                WindowParser.FUNCTIONS["TRUNC"](args)
                if len(args) == 2 and args[1].is_string
                else exp.Anonymous(this="TRUNC", expressions=args)
            ),
        }
        FUNCTION_PARSERS = {**WindowParser.FUNCTION_PARSERS, **TABLE_FUNCTIONS}  # noqa: RUF012
