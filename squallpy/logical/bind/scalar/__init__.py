"""Scalar functions that are made of operations, a file for each category of `functions/scalar`."""
