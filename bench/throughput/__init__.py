"""Tuples per second against peers in the same run."""
