"""What tests stand on: DuckDB as the oracle, step tests, goldens, TPC data, random queries and streams.

oracle   the rows of each stream so far, in DuckDB    compare     two bags of rows, and how they differ
steps    SQL, batches and expected rows as text       engines     what runs steps: every executor
memory   sources and batches that tests push          strategies  random queries and ± streams
tpc      data and schemas of TPC-H and TPC-DS         goldens     EXPLAIN of standard queries as files
joins    the adaptive join with its messages in any order
standalone   a cluster of Spark on loopback
"""
