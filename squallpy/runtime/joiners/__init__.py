"""Adaptive joins at work: how tuples are routed over a grid, and how state is copied when the grid changes."""
