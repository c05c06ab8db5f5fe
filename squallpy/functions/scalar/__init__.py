"""Scalar functions and operators, a file for each category; `runtime/evaluate/scalar` has their evaluators."""
