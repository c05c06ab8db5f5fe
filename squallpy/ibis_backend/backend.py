"""The backend: tables, views and answers of a session for Ibis.

con = ibis.squall.connect()
con.create_source("items", schema=…, connector_properties={"connector": "pushed"})
con.create_materialized_view("rev", con.table("items").group_by("oid").agg(n=ibis._.count()))
"""

import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import ibis
import ibis.common.exceptions as com
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pyarrow as pa
import pyarrow.parquet as pq
from ibis.backends import NoExampleLoader, NoUrl
from ibis.backends.sql import SQLBackend
from ibis.formats.pandas import PandasData
from ibis.formats.pyarrow import PyArrowData
from sqlglot import exp

import squallpy
from squallpy.api.session import Session
from squallpy.base.errors import SquallError
from squallpy.catalog.catalog import ViewDefinition
from squallpy.catalog.relation import Field, Relation
from squallpy.frontend.declaration_text import declaration_text, qualified, quote_text
from squallpy.ibis_backend.compiler import compiler
from squallpy.ibis_backend.types import SquallType, ibis_type


class Backend(SQLBackend, NoExampleLoader, NoUrl):  # type: ignore[misc]
    """Ibis over a session of squallpy."""

    name = "squall"
    compiler = compiler
    supports_python_udfs = False

    def do_connect(self, session: Session | None = None, **options: Any) -> None:
        """Connect to a session, or begin one.

        Args:
            session: A session of `squallpy.connect()`.
            options: What `squallpy.connect` takes: backend, checkpoint, settings.
        """
        self.con = session or squallpy.connect(**options)
        self._live = self.con._session
        self._folder = Path(tempfile.mkdtemp(prefix="squallpy-ibis-"))

    def disconnect(self) -> None:
        """Close the session, and remove the rows of tables that were made from Python."""
        self.con.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def version(self) -> str:
        return squallpy.__version__

    # what there is

    def list_tables(self, *, like: str | None = None, database: Any = None) -> list[str]:
        """List streams, tables and views."""
        if database is not None:
            raise com.UnsupportedArgumentError("squallpy has no databases")
        entries = self._live.catalog.entries.values()
        names: list[str] = self._filter_with_like(
            [e.name for e in entries if isinstance(e, Relation | ViewDefinition)], like
        )
        return names

    def get_schema(self, table_name: str, *, catalog: str | None = None, database: str | None = None) -> sch.Schema:
        """Return the columns of a stream, table or view."""
        name = f"{database}.{table_name}" if database else table_name
        try:
            return _schema(self._live.columns(name))
        except SquallError as error:
            if error.code == "SQ2001":
                raise com.TableNotFound(name) from error
            raise

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return _schema(self._live.schema(query))

    # what is done

    def raw_sql(self, query: str | exp.Expression, **_: Any) -> pa.Table | None:
        """Execute a statement of our SQL; returns the rows of a SELECT."""
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        outcomes = [*self._live.execute(text)]
        return outcomes[-1].table if outcomes else None

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: str | exp.Expression, **kwargs: Any) -> Iterator[pa.Table | None]:
        yield self.raw_sql(query, **kwargs)

    def _fetch_from_cursor(self, cursor: pa.Table, schema: sch.Schema) -> Any:
        table = _in_types(cursor, schema)
        return PandasData.convert_table(table.to_pandas(), schema)

    def _arrow(self, expr: ir.Expr, params: Any, limit: Any) -> pa.Table:
        self._run_pre_execute_hooks(expr)
        table = expr.as_table()
        rows = self.raw_sql(self.compile(table, params=params, limit=limit))
        assert rows is not None
        return _in_types(rows, table.schema())

    def to_pyarrow(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        **_: Any,
    ) -> Any:
        return expr.__pyarrow_result__(self._arrow(expr, params, limit))

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Mapping[ir.Scalar, Any] | None = None,
        limit: int | str | None = None,
        chunk_size: int = 1_000_000,
        **_: Any,
    ) -> pa.RecordBatchReader:
        return self._arrow(expr, params, limit).to_reader(max_chunksize=chunk_size)

    # what is made

    def create_table(
        self,
        name: str,
        /,
        obj: Any = None,
        *,
        schema: sch.IntoSchema | None = None,
        database: str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Create a static table of rows, or of an answer as it is now; it is there until the connection ends."""
        if isinstance(obj, pa.RecordBatchReader):
            obj = obj.read_all()
        if obj is None and schema is None:
            raise ValueError("Either `obj` or `schema` must be specified")
        if schema is not None:
            schema = ibis.schema(schema)
        if obj is None:
            assert schema is not None
            rows = schema.to_pyarrow().empty_table()
        elif isinstance(obj, ir.Expr):
            rows = self._arrow(obj, None, None)
        else:
            given = ibis.memtable(obj, schema=schema).op()
            rows = given.data.to_pyarrow(given.schema)
        self._create_static(name, rows, schema or sch.Schema.from_pyarrow(rows.schema), overwrite)
        return self.table(name, database=database)

    def _create_static(self, name: str, rows: pa.Table, schema: sch.Schema, overwrite: bool = False) -> None:
        columns = _declared(schema)
        path = self._folder / f"{len([*self._folder.iterdir()])}.parquet"
        pq.write_table(rows, path)
        text = declaration_text(name, "TABLE", columns, "parquet", {"path": str(path)})
        self.raw_sql(text.replace("CREATE TABLE", "CREATE OR REPLACE TABLE", 1) if overwrite else text)

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self._create_static(op.name, op.data.to_pyarrow(op.schema), op.schema)

    def _make_memtable_finalizer(self, name: str) -> Callable[..., None]:
        return lambda: self.drop_table(name, force=True)

    def create_materialized_view(
        self, name: str, /, obj: ir.Table, *, database: str | None = None, overwrite: bool = False
    ) -> ir.Table:
        """Create a view that is kept fresh from now on."""
        self._run_pre_execute_hooks(obj)
        replaces = "OR REPLACE " if overwrite else ""
        self.raw_sql(f"CREATE {replaces}MATERIALIZED VIEW {qualified(_name(name, database))} AS {self.compile(obj)}")
        return self.table(name, database=database)

    def drop_materialized_view(self, name: str, /, *, database: str | None = None, force: bool = False) -> None:
        """Drop a materialized view."""
        self._drop("MATERIALIZED VIEW", name, database, force)

    def create_source(
        self,
        name: str,
        /,
        *,
        schema: sch.IntoSchema | None = None,
        database: str | None = None,
        connector_properties: Mapping[str, Any],
        data_format: str | None = None,
        encode_format: str | None = None,
        encode_properties: Mapping[str, Any] | None = None,
        primary_key: str | tuple[str, ...] = (),
        timestamp_by: str | None = None,
        delay: str | None = None,
        stored: bool = False,
    ) -> ir.Table:
        """Create a stream.

        Args:
            schema: Its columns; None: as the files have them.
            connector_properties: `connector` is what follows USING, such as kafka or parquet; the others are options.
            data_format: The changelog of the rows, such as UPSERT or DEBEZIUM; PLAIN: inserts.
            encode_format: The format of messages, such as JSON or AVRO.
            encode_properties: Further options.
        """
        options = {**connector_properties, **(encode_properties or {})}
        using = str(options.pop("connector", "pushed"))
        if data_format is not None and data_format.upper() != "PLAIN":
            options["changelog"] = data_format.lower()
        if encode_format is not None:
            options["format"] = encode_format.lower()
        columns = _declared(ibis.schema(schema)) if schema is not None else None
        self.con.stream(
            _name(name, database),
            columns,
            using=using,
            primary_key=primary_key,
            timestamp_by=timestamp_by,
            delay=delay,
            stored=stored,
            options=options,
        )
        return self.table(name, database=database)

    def drop_source(self, name: str, /, *, database: str | None = None, force: bool = False) -> None:
        """Drop a stream."""
        self._drop("STREAM", name, database, force)

    def create_sink(
        self,
        name: str,
        /,
        *,
        sink_from: str | None = None,
        connector_properties: Mapping[str, Any] | None = None,
        obj: ir.Table | None = None,
        database: str | None = None,
        data_format: str | None = None,
        encode_format: str | None = None,
        encode_properties: Mapping[str, Any] | None = None,
    ) -> None:
        """Create a sink of a view or of an expression.

        Args:
            sink_from: The view; or else `obj`.
            connector_properties: `connector` is what follows USING; the others are options.
        """
        if (sink_from is None) == (obj is None):
            raise ValueError("Either `sink_from` or `obj` must be specified, and not both")
        options = {**(connector_properties or {}), **(encode_properties or {})}
        using = str(options.pop("connector", "parquet"))
        if data_format is not None:
            options["mode"] = data_format.lower()
        if encode_format is not None:
            options["format"] = encode_format.lower()
        listed = ", ".join(f"{quote_text(key)} {quote_text(str(value))}" for key, value in options.items())
        query = self.compile(obj) if obj is not None else f"SELECT * FROM {qualified(sink_from or '')}"
        given = f" OPTIONS ({listed})" if listed else ""
        self.raw_sql(f"CREATE SINK {qualified(_name(name, database))} USING {using}{given} AS {query}")

    def drop_sink(self, name: str, /, *, database: str | None = None, force: bool = False) -> None:
        """Drop a sink."""
        self._drop("SINK", name, database, force)

    def drop_table(self, name: str, /, *, database: Any = None, force: bool = False) -> None:
        self._drop("TABLE", name, database, force)

    def drop_view(self, name: str, /, *, database: str | None = None, force: bool = False) -> None:
        self._drop("VIEW", name, database, force)

    def _drop(self, kind: str, name: str, database: str | None, force: bool) -> None:
        self.raw_sql(f"DROP {kind} {'IF EXISTS ' if force else ''}{qualified(_name(name, database))}")


def _name(name: str, database: str | None) -> str:
    return name if database is None else f"{database}.{name}"


def _declared(schema: sch.Schema) -> dict[str, str]:
    """Write the columns of a schema as those of CREATE TABLE."""
    return {c: SquallType.to_string(t) + ("" if t.nullable else " NOT NULL") for c, t in schema.items()}


def _schema(columns: Iterable[Field]) -> sch.Schema:
    return sch.Schema({field.name: ibis_type(field.type, field.nullable) for field in columns})


def _in_types(table: pa.Table, schema: sch.Schema) -> pa.Table:
    """Convert an answer to the types that Ibis derives; nested values are JSON in ours."""
    arrays = []
    for column, (_, dtype) in zip(table.columns, schema.items(), strict=True):
        wanted = dtype.to_pyarrow()
        if dtype.is_null():
            column = pa.chunked_array([pa.nulls(len(column))])
        if dtype.is_nested() and pa.types.is_string(column.type):
            column = pa.chunked_array([pa.array([v and json.loads(v) for v in column.to_pylist()], wanted)])
        arrays.append(column)
    return PyArrowData.convert_table(pa.table(arrays, [*schema]), schema)
