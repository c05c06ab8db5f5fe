"""Evaluators of the operations in `functions/scalar`, by the same categories."""
