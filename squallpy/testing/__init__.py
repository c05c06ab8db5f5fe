"""Infrastructure of the tests: DuckDB as the oracle, step tests, goldens, TPC data, random queries and streams.

oracle              the rows of each stream so far, in DuckDB; what it lacks is made from scratch by the
                    window_oracle, windowing_oracle, session_oracle, recursion_oracle, matrix_oracle and model_oracle
naive_calculus      the ring calculus by its definition; view_tree_oracle, view trees over any of the rings;
                    matrix_checks, matrix programs
compare_rows        two bags of rows, and how they differ
step_tests          SQL, batches and expected rows as text; example_runs, those of examples
engines             the executors that run step tests
memory_source       sources and batches that tests push; ignoring_sink, sinks that ignore what they get
generators          random queries and ± streams; theta_join_cases and band_join_cases, joins; letter_case and
                    mutations, of scripts
goldens             EXPLAIN of standard queries as files; passes_at_work, step tests by what they show
sql_manual          docs/sql.md; pass_manual, docs/passes.md; error_pages, docs/errors; console_pages and notebooks run
                    what pages show
tpc                 data and schemas of TPC-H (tpch) and TPC-DS (tpcds)
joins               the adaptive join with its messages in any order
standalone_cluster  a cluster of Spark on loopback
"""
