"""An example as it stands over batches of ± rows from memory, compared with DuckDB after every batch.

    example = Example(text, list(rounds(tables, parts=4)), static={})
    for rows in keep_fresh(example, LocalEngine(), tmp_path): …

The first batch has no rows. Then they come in parts; with every part after the first, some of what came before goes and
some of that comes back; in the end everything goes. Raises Stale where the answer, or the sum of its changes, is not
what DuckDB says.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from squallpy.logical.bind import compile_script
from squallpy.logical.nodes import Limit, Node, Project, Sort
from squallpy.testing.compare_rows import Row, difference, rows_of, whole_days
from squallpy.testing.ignoring_sink import IgnoringSink
from squallpy.testing.oracle import MULT, Answers, Oracle
from squallpy.testing.step_tests import Engine

Batch = dict[str, pa.Table]
_STREAM = re.compile(r"(CREATE STREAM (\w+) \(.*?\) USING )\w+ OPTIONS \(.*?\);", re.DOTALL)


class Stale(AssertionError):
    """An answer that is not that of the rows so far."""


class PrintedExample(IgnoringSink):
    """A sink that keeps the final table."""

    table: pa.Table

    def final(self, table: pa.Table) -> None:
        self.table = table


def rounds(tables: Mapping[str, pa.Table], parts: int, seed: int = 0) -> Iterator[Batch]:
    """Generate an empty batch, the rows in `parts` batches with random deletes and re-inserts, and a batch that deletes
    all.

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
            batch[name] = _take_with_sign(
                tables[name], np.concatenate([came, gone]), np.repeat([1, -1], [len(came), len(gone)])
            )
        yield batch
    yield {name: _take_with_sign(tables[name], np.flatnonzero(live[name]), -1) for name in tables}


def _take_with_sign(table: pa.Table, places: np.ndarray, mult: np.ndarray | int) -> pa.Table:
    signs = np.broadcast_to(np.asarray(mult, np.int64), len(places))
    return table.take(pa.array(places)).append_column(MULT, pa.array(signs))


def _replace_sources(text: str) -> str:
    """Replace the sources of a script's streams by change streams that the test pushes."""
    return _STREAM.sub(r"\1csv OPTIONS (path '\2', op '__op');", text)


def _is_sorted(plan: Node) -> bool:
    while isinstance(plan, Limit | Project):
        plan = plan.child
    return isinstance(plan, Sort)


class Example:
    """Script with batches that have deletes, the rows of its static tables, and DuckDB's answer after each batch."""

    def __init__(self, text: str, batches: Sequence[Batch], static: Batch) -> None:
        self.text = _replace_sources(text)
        script = compile_script(self.text, "example", lambda relation: ())
        (query,) = script.queries
        self.ordered = _is_sorted(query.plan)
        self.tables = {name: rows for name, rows in static.items() if name in script.relations}
        streams = script.relations.keys() - self.tables.keys()
        self.batches = [{name: rows for name, rows in batch.items() if name in streams} for batch in batches]
        oracle = Oracle(script.relations, query.text)
        for name, rows in self.tables.items():
            oracle.push(name, rows)
        self.answers = Answers(oracle, self.batches, matched=True)


def keep_fresh(example: Example, engine: Engine, folder: Path) -> Iterator[int]:
    """Run an example; yield the number of rows of its answer after each batch, once they have been compared."""
    engine.start(example.text, folder, example.tables)
    engine.expect(example.batches)
    printed: Counter[Row] = Counter()
    for number, batch in enumerate(example.batches):
        for *row, mult in rows_of(engine.push(batch)):
            printed[tuple(row)] += mult
        result, answer = rows_of(engine.result()), example.answers.after(number)
        if printed != Counter(result):
            raise Stale(f"batch {number}: all changes together are not the result")
        assert answer is not None
        if wrong := difference(whole_days(result), whole_days(answer), example.ordered):
            raise Stale(f"batch {number}: {wrong}")
        yield len(result)
