"""Matrix programs kept fresh: views in memory, triggers as visits to them.

A program on the driver (`maintained_program`): `decide` chooses triggers or evaluation, `fire` and `reevaluate` are
the two, over `program_views`; `undo` takes back what overflows. A view is dense (`views`), of few cells (`sparse`) or
of bits (`packed_boolean`, whose triggers `fused_boolean` makes one kernel). `drift` measures rounding.

In queries: `rows` of streams become `cells` of inputs of a program (`query_program`), and what a query has been told
of its outputs changes (`subscription`); `source` is all programs of a query.

In blocks on partitions: the `driver` decides on each batch by the same `decide`, its `commands` go to the partitions,
each of which runs supersteps (`partition`, `superstep`), with a `superstep_state` between two of them.
"""
