"""The process that Python workers are forked from: everything heavy is loaded once, before the first fork.

Spark starts this module instead of `pyspark.daemon` (`spark.python.daemon.module`) and asks it for workers. PySpark
runs a full `gc.collect()` after every task, which with Arrow, pandas and numba loaded may take longer than the task
itself; frozen objects are not visited, and stay shared between the workers. The state of a query in a worker is frozen,
too, which saves 7 ms per task.

NB: nothing here may print to stdout, on which the daemon sends Spark its socket, nor leave a thread running, which a
fork would lose (the thread of Arrow's allocator survives forks).
"""

import ctypes
import gc
import os

# A batch needs as much memory as the one before: Arrow keeps freed memory for 10 s instead of returning it to be
# cleared again, a tenth of a worker's time. NB: read when Arrow is loaded
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "10000")

# PySpark's workers would import these one by one at their first task
import numba  # noqa: F401
import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.compute
import pyspark.daemon
import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types
import pyspark.worker

import squallpy.runtime.spark.worker_tasks  # noqa: F401
from squallpy.runtime.kernels.kernel_precompilation import COMMON, load_cached

_WHOLE = 1024  # tasks after which a worker may collect all its objects, which takes a tenth of a second
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_SPARE = 512 << 20  # free bytes at the end of the heap that are not returned
_MAPPED = 32 << 20  # bytes above which an allocation is mapped alone, and cleared each time; glibc's maximum


class Collector:
    """A replacement of `gc` where PySpark collects, after each task of a worker.

    Survivors are frozen, so that a collection costs what one task has left. Now and then, if the frozen objects have
    grown by half, all are collected, for some of them have become garbage since they were frozen.
    """

    def __init__(self) -> None:
        self._tasks, self._frozen = 0, gc.get_freeze_count()

    def collect(self) -> None:
        """Collect garbage after a task."""
        self._tasks += 1
        if whole := self._tasks % _WHOLE == 0 and 2 * gc.get_freeze_count() > 3 * self._frozen:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if whole:
            self._frozen = gc.get_freeze_count()


def keep_freed_memory() -> None:
    """Keep freed memory in the process for the next batch, which needs as much; on systems without glibc do nothing.

    By default glibc returns the columns of a batch of a million rows to the system, and clears them again: up to a
    tenth of a worker's time.
    """
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED)
        libc.mallopt(_M_TRIM_THRESHOLD, _SPARE)


def warm_up() -> None:
    """Load the cached kernels that most queries call, and pass one Arrow batch through a stream.

    A worker loads or compiles others when it calls them: all of them would be 90 MB, of which a query calls a part.
    """
    load_cached(COMMON)
    batch = pa.record_batch({"target": pa.array([1, 2]), "payload": pa.array([b"", None])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    pa.ipc.open_stream(sink.getvalue()).read_all()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    keep_freed_memory()
    warm_up()
    pyspark.daemon.gc = Collector()  # type: ignore[attr-defined, assignment]
    pyspark.daemon.manager()
