"""Scalar expressions over columns, vectorised: an expression is compiled once to a function from frames to vectors.

`vector` holds the data; `compiled` walks expressions; `numbers`, `logic`, `texts`, `dates`, `casts` are the functions.
`coded` makes programs of most expressions, and `batch` runs them over record batches: the same values, or no answer.
"""
