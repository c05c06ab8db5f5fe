"""Functions that a query can call, each with its arguments and types."""
