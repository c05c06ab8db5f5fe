"""squallpy: SQL over streams, exact and fresh at all times, on Spark."""

from os import environ
from typing import TYPE_CHECKING, Any

from squallpy.base.sqlglot_sources import prefer_sources

# a BLAS thread without work would spin for a tenth of a second, on a processor that our kernels then lack: sleep after
# 2⁸ cycles. Read by OpenBLAS when numpy loads it, so it has to stand here.
environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "8")
prefer_sources()  # before anything imports sqlglot

__version__ = "0.1.0"

if TYPE_CHECKING:
    from squallpy.api.expressions import (
        Expression,
        avg,
        call_function,
        col,
        count,
        desc,
        expr,
        lit,
        max_,
        min_,
        sum_,
        when,
    )
    from squallpy.api.live_view import fresh
    from squallpy.api.relation import Relation
    from squallpy.api.session import Session, Stream, connect
    from squallpy.api.view import Snapshot, View
    from squallpy.base.errors import SquallError
    from squallpy.runtime.spark.table_functions import register

_EXPORTED = {  # by name, where it is: nothing is imported before it is asked for
    "Expression": "squallpy.api.expressions",
    "Relation": "squallpy.api.relation",
    "Session": "squallpy.api.session",
    "Snapshot": "squallpy.api.view",
    "SquallError": "squallpy.base.errors",
    "Stream": "squallpy.api.session",
    "View": "squallpy.api.view",
    "avg": "squallpy.api.expressions",
    "call_function": "squallpy.api.expressions",
    "col": "squallpy.api.expressions",
    "connect": "squallpy.api.session",
    "count": "squallpy.api.expressions",
    "desc": "squallpy.api.expressions",
    "expr": "squallpy.api.expressions",
    "fresh": "squallpy.api.live_view",
    "lit": "squallpy.api.expressions",
    "load_ipython_extension": "squallpy.api.notebook",
    "max_": "squallpy.api.expressions",
    "min_": "squallpy.api.expressions",
    "register": "squallpy.runtime.spark.table_functions",
    "sum_": "squallpy.api.expressions",
    "unload_ipython_extension": "squallpy.api.notebook",
    "when": "squallpy.api.expressions",
}
__all__ = [
    "Expression",
    "Relation",
    "Session",
    "Snapshot",
    "SquallError",
    "Stream",
    "View",
    "__version__",
    "avg",
    "call_function",
    "col",
    "connect",
    "count",
    "desc",
    "expr",
    "fresh",
    "lit",
    "max_",
    "min_",
    "register",
    "sum_",
    "when",
]


def __getattr__(name: str) -> Any:
    """Import what the package exports when it is asked for."""
    if name not in _EXPORTED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_EXPORTED[name]), name)


def __dir__() -> list[str]:
    """List what the package exports, and its modules that are imported."""
    return sorted({*globals(), *_EXPORTED})
