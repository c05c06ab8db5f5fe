"""What tests stand on: DuckDB as the oracle, step tests, TPC-H data, random queries and streams.

oracle   the rows of each stream so far, in DuckDB    compare     two bags of rows, and how they differ
steps    SQL, batches and expected rows as text       engines     what runs steps: the local executor
tpch     data and schemas of TPC-H                    strategies  random queries and ± streams
"""
