"""Evaluation of scalar expressions over columns: an expression is compiled once to a function from frames to vectors.

`vectors` holds the data; `expression_compiler` compiles expressions by the evaluators of `scalar/`, on
`exact_arithmetic`, `logic` and `casts`. `kernel_programs` compiles most expressions to programs, which `kernel_runner`
runs over record batches, with the same values, or None.
"""
