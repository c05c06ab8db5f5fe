"""One cluster for many runs: an executor starts and stops a JVM of its own, but peers keep theirs warm.

with warm("local[2]") as cluster:   →   each SparkExecutor meanwhile runs on that cluster, whatever its master
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

from squallpy.runtime.spark import executor
from squallpy.runtime.spark.spark_session import Cluster, start


@contextmanager
def warm(master: str) -> Iterator[Cluster]:
    """A cluster that each SparkExecutor takes for its own."""
    with start(master) as cluster, patch.object(executor, "start", lambda *_: nullcontext(cluster)):
        yield cluster
