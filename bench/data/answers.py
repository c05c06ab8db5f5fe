"""Whether an answer is right: compared, as a bag of rows, with DuckDB's over the whole tables."""

import pyarrow as pa

from bench.data.tables import Stream
from squallpy.testing.compare_rows import difference


def verdict(stream: Stream, answer: pa.Table | None) -> str:
    """`equal`, the first difference in words, or `not reached` for a run that was stopped."""
    if answer is None:
        return "not reached"
    import duckdb

    connection = duckdb.connect()
    for name, relation in stream.query.relations.items():
        rows, left = f"'{stream.folder / name}.parquet'", ""
        if relation.op:
            key = ", ".join(relation.primary_key)
            left = f"WHERE ({key}) NOT IN (SELECT ({key}) FROM {rows} WHERE {relation.op} = '-')"
        connection.execute(f"CREATE TABLE {name} AS FROM {rows} {left}")
    expected = connection.sql(stream.query.by_hand or stream.query.for_duckdb).to_arrow_table()
    return difference(answer, expected).replace("\n", "; ") or "equal"
