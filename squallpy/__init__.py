"""squallpy: SQL over streams, exact and fresh at all times, on Spark."""

from os import environ

# a BLAS thread without work would spin for a tenth of a second, on a processor that our kernels then lack: sleep after
# 2⁸ cycles. Read by OpenBLAS when numpy loads it, so it has to stand here.
environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "8")

__version__ = "0.1.0"
