"""Rewrites: passes over the plan, over lowered queries and over trigger programs, in the order of `pipeline`."""
