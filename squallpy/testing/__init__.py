"""Infrastructure of the tests: DuckDB as the oracle, step tests, goldens, TPC data, random queries and streams.

oracle              the rows of each stream so far, in DuckDB
compare_rows        two bags of rows, and how they differ
step_tests          SQL, batches and expected rows as text
engines             the executors that run step tests
memory_source       sources and batches that tests push
generators          random queries and ± streams
goldens             EXPLAIN of standard queries as files
tpc                 data and schemas of TPC-H and TPC-DS
joins               the adaptive join with its messages in any order
standalone_cluster  a cluster of Spark on loopback
"""
