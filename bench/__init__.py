"""Measurements, each beside its peers in the same run; results are kept in `results/`.

throughput/     tuples per second against DuckDB, Polars, Spark's streaming SQL and Flink     make bench
table1/         Table 1 of the paper beside ours                                              make table
joins/          join operators on skewed streams, migrations, band joins                      make bench-joins
matrix/         matrix programs beside their re-evaluation                                    make bench-matrix
fivm/           cofactor matrices over joins, beside C++ by hand and the same sums in SQL     make bench-fivm
distribution/   executors, fixed cost of a batch, recovery, worth of each optimisation
endless.py      memory and batches of runs without end: hours of idle looks, an hour of input
estimates.py    how often bounds of `estimate` hold, by repetition, and how they close
recursion.py    a transitive closure whose edges change, beside DuckDB asked again
kernels.py      nanoseconds per tuple of pools, dictionaries and lanes

data/           tables, order books and queries        engines/   what is measured, one file per system
measure/        batches, processes, memory, results
"""
