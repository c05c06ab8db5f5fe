"""Maintenance of matrix programs: views in memory, triggers as visits to them.

A program on the driver (`maintained_program`): `decide` chooses triggers or evaluation, `fire` and `reevaluate` are
the two, over `program_views`; `undo` takes back what overflows. A view is dense (`views`), of few cells (`sparse`) or
of bits (`packed_boolean`, whose triggers `fused_boolean` makes one kernel). `drift` measures rounding.

In queries: matrices are the first `stage` of a plan, `on_driver` or in `blocks`. The `incoming` `rows` of a batch are
`cells` of the inputs of each `query_program`; what changes in its outputs since the last report is a `subscription`'s.
"""
