"""Passes over lowered queries, before deltas are taken."""
