"""Logical plan → ring calculus: each query becomes one view over sums of products, without rewrites."""
