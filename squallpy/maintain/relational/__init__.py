"""Recursive incremental view maintenance (`dbtoaster-batch-ivm` §2–3).

`delta_rules` derive the changes of a query in the ring calculus; `materialise` compiles the query and, recursively, the
views that its deltas read, into a trigger program. `view_registry` finds a view that is there already, up to names
(`canonical_form`).
"""
