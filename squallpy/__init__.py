"""squallpy: SQL over streams, exact and fresh at all times, on Spark."""

__version__ = "0.1.0"
