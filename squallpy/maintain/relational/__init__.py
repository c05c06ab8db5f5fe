"""Recursive incremental view maintenance (`dbtoaster-batch-ivm` §2–3).

`lower` writes a logical plan in the ring calculus (`calculus`), `delta` derives changes, `materialise` compiles the
query and, recursively, the views that its deltas read, into a `program` of triggers; `show` prints both.
"""
