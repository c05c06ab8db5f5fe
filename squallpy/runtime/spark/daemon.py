"""What Python workers are forked from: everything heavy is loaded once, before the first fork.

Spark starts this module instead of `pyspark.daemon` (`spark.python.daemon.module`) and asks it for workers. PySpark
runs a full `gc.collect()` after every task, which with Arrow, pandas and numba loaded was seen to cost more than the
task itself; frozen objects are not looked at, and stay shared between the workers.

NB: nothing here may print to stdout, on which the daemon tells Spark its socket, nor leave a thread running, which a
fork would lose (the allocator's own, of Arrow, survives forks by itself).
"""

import gc

# what PySpark's workers import anyway, one by one, at their first task
import numba  # noqa: F401
import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.compute
import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import squallpy.runtime.spark.tasks  # noqa: F401
from squallpy.runtime.kernels.ready import load_all


def warm() -> None:
    """Loads the kernels (compiled here if no cache has them) and takes one Arrow batch through a stream."""
    load_all()
    batch = pa.record_batch({"target": pa.array([1, 2]), "payload": pa.array([b"", None])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    pa.ipc.open_stream(sink.getvalue()).read_all()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    warm()
    manager()
