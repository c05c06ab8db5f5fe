"""Execution on Spark: Structured Streaming keeps the offsets, stages of Python workers run a micro-batch.

    java         search for a suitable Java           cluster      the Spark session, and the reason for each setting
    archive      class data of Spark's JVM            stream       the micro-batch loop
    tasks        the stages in Python workers         daemon       the process that Python workers are forked from
    masters      names and checks of masters          package      the archive sent to executors of a cluster
    placement    hosts of partitions                  timeline     a batch as spans, for a profile
    planned_job  a job planned once, run many times   coordinator  the driver's plan of each batch
    submit       the spark-submit command             gateway      the JVM of spark-submit

The only folder that imports pyspark. Importing the package itself does not.
"""
