"""Matrix programs at work: views in memory, triggers as passes over them.

views     how a matrix is stored      algebra   operations on arrays, in a semiring
sparse    inputs with few cells       live      a program kept fresh       drift   how far rounding has taken it
packed    factors of truth values     fused     their triggers as one kernel
room      is there memory for it

In queries: rows of streams (`rows`) are cells (`cells`) of the inputs of a program (`kept`), and what has been told of
its outputs (`shown`) changes; `source` is all programs of a query, as streams of changed cells.

In blocks: the driver decides on each batch (`spread`), its `orders` go to the partitions, of which each is a `part`
that does the `work` of supersteps, `now` between two of them, and reads on (`reading`) when all is done.
"""
