"""Matrices of second moments: of what systems answer, and of the join itself, by NumPy.

moments(("x",), [2.0, 3.0, 5.0])   →   [[2, 3], [3, 5]]: the count, Σx, Σx·x
"""

from collections.abc import Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from bench.data.tables import Stream
from bench.fivm.queries import entries
from bench.fivm.schemas import Schema

TOLERANCE = 1e-9  # of a sum of products, by the root of the product of both sums of squares
CHUNK = 100_000  # rows of the join at once
Reals = npt.NDArray[np.float64]


def moments(features: Sequence[str], values: Sequence[float] | Reals, order: Sequence[str] | None = None) -> Reals:
    """Make the matrix of values that are listed as `entries` does; its rows in another order of the features."""
    place = {feature: i + 1 for i, feature in enumerate(order or features)}
    out = np.zeros((len(features) + 1, len(features) + 1))
    for some, value in zip(entries(tuple(features)), values, strict=True):
        i, j = [0, 0, *(place[name] for name in some)][-2:]
        out[i, j] = out[j, i] = value
    return out


def of_answer(features: Sequence[str], answer: pa.Table) -> Reals:
    """Make the matrix of one row of sums, or of the rows (a, b, value) of `cofactor`."""
    if answer.column_names[:2] == ["a", "b"]:
        place = {feature: i for i, feature in enumerate(("", *features))}
        out = np.zeros((len(place), len(place)))
        for a, b, value in zip(*(column.to_pylist() for column in answer.columns), strict=True):
            out[place[a], place[b]] = out[place[b], place[a]] = value
        return out
    return moments(features, [float(column[0].as_py() or 0) for column in answer.columns])


def of_join(schema: Schema, stream: Stream) -> Reals:
    """Make the matrix of what is in the streams at their end: DuckDB joins, NumPy multiplies."""
    connection = duckdb.connect()
    for name, relation in stream.query.relations.items():
        rows, left = f"'{stream.folder / name}.parquet'", ""
        if relation.op:
            [key] = relation.primary_key
            left = f"WHERE {key} NOT IN (SELECT {key} FROM {rows} WHERE {relation.op} = '-')"
        connection.execute(f"CREATE TABLE {name} AS FROM {rows} {left}")
    columns = ", ".join(schema.features)
    joined = connection.sql(f"SELECT {columns} FROM {' NATURAL JOIN '.join(schema.relations)}")
    out = np.zeros((len(schema.features) + 1, len(schema.features) + 1))
    for chunk in joined.to_arrow_reader(CHUNK):
        X = np.column_stack([np.ones(len(chunk)), *(np.asarray(column, np.float64) for column in chunk.columns)])
        out += X.T @ X
    return out


def verdict(found: Reals, expected: Reals) -> str:
    """Say `equal`, or how much the entry that is off most is off."""
    size = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    with np.errstate(invalid="ignore"):
        off = np.nan_to_num(np.abs(found - expected) / np.maximum(size, 1e-300), nan=np.inf)
    if found[0, 0] != expected[0, 0]:
        return f"count {found[0, 0]:,.0f}, not {expected[0, 0]:,.0f}"
    return "equal" if off.max() <= TOLERANCE else f"off by {off.max():.0e}"
