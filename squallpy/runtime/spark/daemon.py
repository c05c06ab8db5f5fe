"""What Python workers are forked from: everything heavy is loaded once, before the first fork.

Spark starts this module instead of `pyspark.daemon` (`spark.python.daemon.module`) and asks it for workers. PySpark
runs a full `gc.collect()` after every task, which with Arrow, pandas and numba loaded was seen to cost more than the
task itself; frozen objects are not looked at, and stay shared between the workers. What a query keeps in a worker is
frozen, too: 7 ms of each task were spent on that.

NB: nothing here may print to stdout, on which the daemon tells Spark its socket, nor leave a thread running, which a
fork would lose (the allocator's own, of Arrow, survives forks by itself).
"""

import ctypes
import gc
import os

# A batch needs as much memory as the one before: Arrow keeps for 10 s what it has, instead of giving it back to be
# cleared again, which was a tenth of a worker's time. NB: read when Arrow is loaded
os.environ.setdefault("MIMALLOC_PURGE_DELAY", "10000")

# what PySpark's workers import anyway, one by one, at their first task
import numba  # noqa: F401
import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow as pa
import pyarrow.compute
import pyspark.daemon
import pyspark.sql.pandas.serializers
import pyspark.sql.pandas.types
import pyspark.worker

import squallpy.runtime.spark.tasks  # noqa: F401
from squallpy.runtime.kernels.cache import load_cached

_WHOLE = 1024  # tasks after which a worker may look at all that it has, which takes a tenth of a second
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h
_SPARE = 512 << 20  # bytes that are free at the end of the heap and stay there
_MAPPED = 32 << 20  # bytes of what is mapped for itself, and cleared each time; the most that glibc takes


class Collector:
    """Takes the place of `gc` where PySpark collects, after each task of a worker.

    What is still there is frozen, so that a collection costs what one task has left. Now and then, if what is frozen
    has grown by half, all is looked at, for a part of it is garbage that was none when it was frozen.
    """

    def __init__(self) -> None:
        self._tasks, self._frozen = 0, gc.get_freeze_count()

    def collect(self) -> None:
        """A task is done."""
        self._tasks += 1
        if whole := self._tasks % _WHOLE == 0 and 2 * gc.get_freeze_count() > 3 * self._frozen:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if whole:
            self._frozen = gc.get_freeze_count()


def keep_freed() -> None:
    """What numpy frees waits for the next batch, which asks for as much: as glibc does it, columns of a batch of a
    million are given back to the system and cleared again, up to a tenth of a worker's time. Elsewhere nothing."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_THRESHOLD, _MAPPED)
        libc.mallopt(_M_TRIM_THRESHOLD, _SPARE)


def warm() -> None:
    """Loads the kernels that the cache has (a worker compiles others when it calls them) and takes one Arrow batch
    through a stream."""
    load_cached()
    batch = pa.record_batch({"target": pa.array([1, 2]), "payload": pa.array([b"", None])})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    pa.ipc.open_stream(sink.getvalue()).read_all()
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    keep_freed()
    warm()
    pyspark.daemon.gc = Collector()  # type: ignore[attr-defined, assignment]
    pyspark.daemon.manager()
