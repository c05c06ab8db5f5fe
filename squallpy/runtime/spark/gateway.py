"""The way to the JVM that spark-submit has started, if it has started this process."""

import io
import os
from functools import cache
from typing import Any, TextIO

from pyspark.java_gateway import launch_gateway


def is_submitted() -> bool:
    """Does this process run under spark-submit?"""
    return "PYSPARK_GATEWAY_PORT" in os.environ


@cache
def submitted_gateway() -> Any:
    """The gateway that was there before us; it is not ours to shut down."""
    assert is_submitted()
    return launch_gateway()  # type: ignore[no-untyped-call]


def java_stderr() -> TextIO:
    """The stderr of spark-submit: it joins that of the program that it runs into its stdout, where only data belong."""
    return io.TextIOWrapper(_JavaStderr(), encoding="utf-8", write_through=True)  # type: ignore[type-var]


class _JavaStderr(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        submitted_gateway().jvm.java.lang.System.err.print(bytes(data).decode(errors="replace"))
        return len(data)
