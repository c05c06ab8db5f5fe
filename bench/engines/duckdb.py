"""DuckDB, asked again after every batch: rows are inserted into its tables, the query runs over all of them."""

from time import perf_counter

import duckdb
import pyarrow as pa

from bench.data import Stream
from bench.queries import TYPES
from bench.watch import Watch


class Reevaluation:
    """Tables in memory, all cores."""

    version = f"DuckDB {duckdb.__version__}"

    def run(self, stream: Stream, watch: Watch) -> pa.Table | None:
        connection = duckdb.connect()
        for name, columns in stream.query.columns.items():
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{c} {TYPES[c]}' for c in columns)})")
        answer, done = None, 0
        for batch in watch.plan(stream.batches):
            _append(connection, stream.between(done, batch))
            rows = stream.between(batch, batch + 1)
            start = perf_counter()
            _append(connection, rows)
            answer = connection.sql(stream.query.text).to_arrow_table()
            done = batch + 1
            if not watch.record(batch, perf_counter() - start):
                break
        connection.close()
        return answer if done == stream.batches else None

    def close(self) -> None: ...


def _append(connection: duckdb.DuckDBPyConnection, rows: dict[str, pa.RecordBatch]) -> None:
    connection.begin()
    for name, batch in rows.items():
        if len(batch):
            connection.register("arrived", pa.table(batch))
            connection.execute(f"INSERT INTO {name} SELECT * FROM arrived")
            connection.unregister("arrived")
    connection.commit()
