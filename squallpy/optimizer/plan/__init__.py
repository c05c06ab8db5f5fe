"""Passes over the plan: pure functions from a node to a new node, or None where they do not apply."""
