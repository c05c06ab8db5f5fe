"""An example as it stands over batches of ± rows from memory, compared with DuckDB after every batch.

for rows in keep_fresh(text, rounds(tables, parts=4), LocalEngine(), tmp_path): …

The first batch has no rows. Then they come in parts; with every part after the first, some of what came before goes and
some of that comes back; in the end everything goes. Raises Stale where the answer, or the sum of its changes, is not
what DuckDB says.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from squallpy.logical.bind import compile_script
from squallpy.testing.compare import Row, difference, rows_of, whole_days
from squallpy.testing.oracle import MULT, Oracle
from squallpy.testing.steps import Engine

Batch = dict[str, pa.Table]
_STREAM = re.compile(r"(CREATE STREAM (\w+) \(.*?\) USING )\w+ OPTIONS \(.*?\);", re.DOTALL)


class Stale(AssertionError):
    """An answer that is not that of the rows so far."""


class Kept:
    """A sink that keeps the final table."""

    table: pa.Table

    def begin(self, *_: object) -> None: ...
    def batch(self, *_: object) -> None: ...
    def finish(self, *_: object) -> None: ...

    def final(self, table: pa.Table) -> None:
        self.table = table


def rounds(tables: Mapping[str, pa.Table], parts: int, seed: int = 0) -> Iterator[Batch]:
    """Nothing; rows in random order in `parts` batches, with deletes of earlier rows and re-inserts; then all goes.

    Each batch has a column `__mult`; no batch takes away more of a row than there is.
    """
    random = np.random.default_rng(seed)
    places = {name: random.permutation(len(table)) for name, table in tables.items()}
    live = {name: np.zeros(len(table), bool) for name, table in tables.items()}
    yield {}
    for part in range(parts):
        batch = {}
        for name, order in places.items():
            n, here = len(order), live[name]
            gone = np.flatnonzero(here & (random.random(n) < 0.2))
            back = np.flatnonzero(~here & (np.argsort(order) < n * part // parts) & (random.random(n) < 0.5))
            new = order[n * part // parts : n * (part + 1) // parts]
            here[gone], here[back], here[new] = False, True, True
            came = np.concatenate([new, back])
            batch[name] = _signed(
                tables[name], np.concatenate([came, gone]), np.repeat([1, -1], [len(came), len(gone)])
            )
        yield batch
    yield {name: _signed(tables[name], np.flatnonzero(live[name]), -1) for name in tables}


def _signed(table: pa.Table, places: np.ndarray, mult: np.ndarray | int) -> pa.Table:
    signs = np.broadcast_to(np.asarray(mult, np.int64), len(places))
    return table.take(pa.array(places)).append_column(MULT, pa.array(signs))


def from_memory(text: str) -> str:
    """A script whose streams are change streams that the test pushes."""
    return _STREAM.sub(r"\1csv OPTIONS (path '\2', op '__op');", text)


def keep_fresh(text: str, batches: Iterable[Batch], engine: Engine, folder: Path, static: Batch) -> Iterator[int]:
    """Run a script over batches; how many rows its answer has after each, once they have been compared."""
    script = compile_script(from_memory(text), "example", lambda relation: ())
    (query,) = script.queries
    oracle, ordered = Oracle(script.relations, query.text), "ORDER BY" in query.text
    tables = {name: rows for name, rows in static.items() if name in script.relations}
    for name, rows in tables.items():
        oracle.push(name, rows)
    engine.start(from_memory(text), folder, tables)
    printed: Counter[Row] = Counter()
    for number, batch in enumerate(batches):
        pushed = {name: rows for name, rows in batch.items() if name in script.relations and name not in tables}
        for name, rows in pushed.items():
            oracle.push(name, rows)
        for *row, mult in rows_of(engine.push(pushed)):
            printed[tuple(row)] += mult
        result = rows_of(engine.result())
        if printed != Counter(result):
            raise Stale(f"batch {number}: all changes together are not the result")
        if wrong := difference(whole_days(result), whole_days(oracle.answer()), ordered):
            raise Stale(f"batch {number}: {wrong}")
        yield len(result)
