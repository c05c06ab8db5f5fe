"""Incremental linear algebra (`linview`): a matrix program → triggers made of low-rank deltas."""
