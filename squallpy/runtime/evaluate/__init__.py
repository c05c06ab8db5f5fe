"""Evaluation of scalar expressions over columns: an expression is compiled once to a function from frames to vectors.

`vectors` holds the data; `expression_compiler` compiles expressions by the evaluators of `scalar/`, which the
`evaluator_table` finds, on `exact_arithmetic`, `moments`, `logic` and `casts` (`text_column_casts`, `interval_texts`).
Functions with `computed_patterns`, and `guarded_expressions`, are evaluated for some rows at a time.
`constant_evaluation` folds constants; `series` has the values of SEQUENCE, `nested_elements` those of ARRAYs and MAPs,
which `held_values` writes, and `order_texts` their order; `spark_hashes` are those of HASH and XXHASH64; `sort_keys`
are what ORDER BY compares.
`kernel_programs` compiles most expressions to programs, which `kernel_runner` runs over record batches, with the same
values, or None.
"""
