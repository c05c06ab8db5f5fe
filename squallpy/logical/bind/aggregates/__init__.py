"""Aggregate functions: their calls, and the Aggregate node that collects those of a SELECT."""
