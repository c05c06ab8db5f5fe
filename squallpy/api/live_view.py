"""Table functions over streaming DataFrames, kept fresh as rows come.

    rows = spark.readStream.schema("a DOUBLE, b DOUBLE, y DOUBLE").parquet("obs/")
    model = squallpy.fresh(rows, "ols", "y", intercept=True)
    model.to_pandas()                                          feature, coefficient: as of the last whole batch
    model.stop()

The DataFrame is read as a stream of Spark's is (`USING spark`), and the function is one of those in SQL: a batch costs
what it changes.
"""

import threading
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from time import sleep

import numpy as np
import pyarrow as pa

from squallpy.api.rows import Rows
from squallpy.base.batch_trigger import BatchTrigger
from squallpy.base.errors import SquallError, nearest
from squallpy.catalog.relation import Relation
from squallpy.functions.model_functions import FUNCTIONS as MODELS
from squallpy.logical.bind.table_functions import FUNCTIONS
from squallpy.logical.nodes import Query
from squallpy.runtime.observers.protocol import Observer, QueryStart
from squallpy.runtime.sinks.upsert_table import number_rows
from squallpy.runtime.spark.frame_stream import (
    DataFrame,
    FrameStream,
    StreamingQuery,
    check_frame,
    declare_columns,
    find_query,
    quote,
)
from squallpy.script_session import RunOptions, ScriptSession

OnChange = Callable[[int, pa.Table, pa.Table], object]
_LOOK = 0.02  # seconds between looks whether all is read
_NUMBERS = count()


def fresh(
    rows: DataFrame,
    function: str,
    *arguments: bool | int | float | str,
    checkpoint: str | None = None,
    trigger: str = "as-it-comes",
    on_change: OnChange | None = None,
    **named: bool | int | float | str,
) -> "LiveView":
    """Keep a table function of a streaming DataFrame fresh, beside the program that goes on.

    Args:
        rows: A streaming DataFrame of a Spark session in this process.
        function: ols, cofactor, pagerank, matrix_power, … as in FROM of a query.
        arguments: Those behind TABLE(…), by place or by name.
        checkpoint: Where state is kept, to go on from there next time; without, each call starts anew.
        trigger: When batches begin, as for `squall run --trigger`; 'available-now' ends when all is read.
        on_change: Called after each batch that changes the answer, with its number, the rows that went and those that
            came.

    Raises SquallError: SQ2003 and other codes for a call that is wrong, SQ2005 where `rows` does not stream.
    """
    check_frame(rows)
    if function.lower() not in (known := FUNCTIONS.keys() | MODELS.keys()):
        raise SquallError("SQ2004", f'unknown function "{function}"', hint=nearest(function, known))
    given = [_literal(each) for each in arguments] + [f"{name} => {_literal(each)}" for name, each in named.items()]
    names = [quote(name) for name in rows.columns]
    call = ", ".join([f"TABLE(SELECT {', '.join(names)} FROM input)", *given])
    stream = f"CREATE STREAM input ({declare_columns(rows)}) USING spark OPTIONS (format 'dataframe');"
    script = f"{stream}\nSELECT * FROM {function}({call});"
    session = FrameSession(f"{function}-{next(_NUMBERS)}", script, rows)
    assert session.script.queries, "its faults are raised here, and not in the thread of the run"
    options = RunOptions("spark", changes=True, final=False, checkpoint=checkpoint, trigger=BatchTrigger.parse(trigger))
    return LiveView(session, options, on_change)


def _literal(value: bool | int | float | str) -> str:
    """Write a constant as SQL has it."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return str(value).upper() if isinstance(value, bool) else repr(value)


class FrameSession(ScriptSession):
    """A session whose stream is a DataFrame."""

    def __init__(self, name: str, text: str, frame: DataFrame) -> None:
        super().__init__(Path(name), text=text)
        self.frame, self.stream = frame, list[FrameStream]()

    def _spark_stream(self, relation: Relation) -> tuple[str, FrameStream]:
        self.stream = [FrameStream(relation, self.frame)]
        return self.stream[0].name, self.stream[0]


class LiveView(Rows, Observer):
    """An answer that is kept fresh in a thread of its own, to be read at any time as of one whole batch."""

    def __init__(self, session: FrameSession, options: RunOptions, on_change: OnChange | None) -> None:
        self._session, self._on_change = session, on_change
        self._rows, self._changes = pa.table({}), list[tuple[pa.Table, int]]()
        self._final: Callable[[], Sequence[pa.Table]] | None = None
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._error: BaseException | None = None
        self.batches = 0
        """Number of batches so far."""
        self._thread = threading.Thread(target=self._run, args=(options,), name=session.path.name, daemon=True)
        self._thread.start()

    @property
    def is_active(self) -> bool:
        """True until it is stopped, fails or has read a stream that ends."""
        return self._thread.is_alive()

    @property
    def query(self) -> StreamingQuery | None:
        """Spark's query that drives the batches; None before it has begun and after its end."""
        return find_query(self._session.frame, self._session.path.stem)

    def to_arrow(self) -> pa.Table:
        """Return the rows as of the last whole batch; raises what has ended the run, if anything has."""
        if self._error:
            raise self._error
        with self._lock:
            return self._merged()

    def to_spark(self) -> DataFrame:
        """Return the rows as a DataFrame of the session."""
        return self._session.frame.sparkSession.createDataFrame(self.to_arrow())

    def wait(self) -> None:
        """Wait until all is read that the stream has now, as Spark's `processAllAvailable` does."""
        while self.is_active and not any(stream.read_to_end() for stream in self._session.stream):
            sleep(_LOOK)
        if self._error:
            raise self._error

    def stop(self) -> None:
        """Stop after the batch in work; with a checkpoint, the next call goes on there."""
        self._stop.set()
        self._thread.join()

    def _run(self, options: RunOptions) -> None:
        try:
            self._session.run(options, self, self._stop, observer=self)
        except BaseException as error:
            self._error = error

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        self._rows = schema.empty_table()

    def batch(self, number: int, deletes: pa.Table, inserts: pa.Table) -> None:
        """Take the changes of a batch."""
        with self._lock:
            self.batches = number + 1
            if self._final:
                (self._rows,), self._final = self._final(), None  # NB: as a batch that comes again is part of them
            else:
                self._changes += [(deletes, -1), (inserts, 1)]
            if sum(len(table) for table, _ in self._changes) > len(self._rows):
                self._merged()
        if self._on_change and (len(deletes) or len(inserts)):
            self._on_change(number, deletes, inserts)

    def on_query_started(self, start: QueryStart) -> None:
        """Take the rows that a checkpoint has."""
        (self._rows,), self._final = start.results(), start.results

    def final(self, table: pa.Table) -> None:
        return

    def finish(self, stopped: bool) -> None:
        return

    def _merged(self) -> pa.Table:
        """Apply the changes so far to the rows, and return them."""
        tables = [(self._rows, 1), *self._changes]
        rows = pa.concat_tables([table for table, _ in tables])
        signs = np.repeat([sign for _, sign in tables], [len(table) for table, _ in tables])
        groups = number_rows(rows, range(rows.num_columns))
        counts = np.bincount(groups, signs).astype(np.int64)
        first = np.unique(groups, return_index=True)[1]
        self._rows = rows.take(pa.array(np.repeat(first, counts))).combine_chunks()
        self._changes = []
        return self._rows
