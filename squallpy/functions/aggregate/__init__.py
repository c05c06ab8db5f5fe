"""Aggregates, a file for each kind: how a query writes them, and the operations of plans that maintain them."""
