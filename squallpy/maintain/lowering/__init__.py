"""Logical plan → ring calculus: each query becomes one view over sums of products; nothing is rewritten here."""
