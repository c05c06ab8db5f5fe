"""Logical plan → trigger program. `relational/` is recursive incremental view maintenance."""
