"""DuckDB, asked again after every batch: rows are inserted into its tables, the query runs over all of them."""

from typing import Any

import duckdb
import pyarrow as pa

from bench.data.tables import Stream
from bench.measure.batches import Watch
from squallpy.catalog.relation import MULT


class Reevaluation:
    """Tables in memory, all cores unless `config` says otherwise."""

    version = f"DuckDB {duckdb.__version__}"
    config: dict[str, Any] = {}  # noqa: RUF012
    facts: dict[str, Any] = {}  # noqa: RUF012

    def run(self, stream: Stream, watch: Watch) -> pa.Table | None:
        connection, text = duckdb.connect(config=self.config), self.text(stream)
        for name in stream.query.tables:
            columns = ", ".join(f"{column} {type}" for column, type in stream.query.types(name).items())
            connection.execute(f"CREATE TABLE {name} ({columns})")
        _append(connection, stream, stream.static)
        answer, done = None, 0
        for batch in watch.plan(stream.batches):
            _append(connection, stream, stream.between(done, batch))
            rows = stream.between(batch, batch + 1)
            start = watch.clock()
            _append(connection, stream, rows)
            answer = connection.sql(text).to_arrow_table()
            done = batch + 1
            if not watch.record(batch, watch.clock() - start):
                break
        connection.close()
        return answer if done == stream.batches else None

    def text(self, stream: Stream) -> str:
        return stream.query.for_duckdb

    def close(self) -> None: ...


class ByHand(Reevaluation):
    """The query as an expert would write it for DuckDB, where that is another one: its answer is the same."""

    version = f"{Reevaluation.version}, by hand"

    def text(self, stream: Stream) -> str:
        by_hand = stream.query.by_hand
        if by_hand is None:
            raise ValueError(f"{stream.query.name} is not written in another way")
        return by_hand


def _append(connection: duckdb.DuckDBPyConnection, stream: Stream, rows: dict[str, pa.RecordBatch]) -> None:
    """Insert, then delete by primary key."""
    connection.begin()
    for name, batch in rows.items():
        if len(batch):
            relation = stream.query.relations[name]
            names = ", ".join(stream.query.columns[name])
            connection.register("arrived", pa.table(batch))
            inserted = f"WHERE {MULT} > 0" if relation.op else ""
            connection.execute(f"INSERT INTO {name} SELECT {names} FROM arrived {inserted}")
            if relation.op:
                same = " AND ".join(f"{name}.{key} = arrived.{key}" for key in relation.primary_key)
                connection.execute(f"DELETE FROM {name} USING arrived WHERE {same} AND {MULT} < 0")
            connection.unregister("arrived")
    connection.commit()
