"""Maintenance of matrix programs: views in memory, triggers as visits to them.

A program on the driver is a `maintained_program`: `maintenance_choice` decides between `trigger_execution` and
`reevaluation`, over `program_views`; the `undo_log` takes back what overflows. Views are dense (`stored_views`), of few
cells (`sparse_view`) or of bits (`packed_boolean`, whose triggers `fused_boolean` makes one kernel). Steps are
operations of the `algebra` on arrays, with triangular `factors`, and `iterations` until they converge. A `memory_check`
comes before views are made, `drift` measures rounding, `errors` are told in the program's names.

In queries, matrices are the first stage of a plan (`matrix_stage`), on the driver (`driver_stage`) or in `blocks`.
`batch_rows` become cells of the inputs of each `query_program` (`rows_to_cells`, `cells`,
`normalised_rows`); what changes in its outputs since the last report is found by `reported_cells`, among the
`affected_cells`.
"""
