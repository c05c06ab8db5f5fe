"""The connection to the JVM of spark-submit, if that has started this process."""

import io
import os
from functools import cache
from typing import Any, TextIO

from pyspark.java_gateway import launch_gateway


def is_submitted() -> bool:
    """True if this process runs under spark-submit."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@cache
def submitted_gateway() -> Any:
    """Connect to the gateway of spark-submit, which is not ours to shut down."""
    assert is_submitted()
    return launch_gateway()  # type: ignore[no-untyped-call]


def java_stderr() -> TextIO:
    """Open the stderr of spark-submit, which joins our stderr into its stdout, where only data belong."""
    return io.TextIOWrapper(_JavaStderr(), encoding="utf-8", write_through=True)  # type: ignore[type-var]


class _JavaStderr(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        submitted_gateway().jvm.java.lang.System.err.print(bytes(data).decode(errors="replace"))
        return len(data)
