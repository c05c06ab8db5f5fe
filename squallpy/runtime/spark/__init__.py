"""Rows by Spark: Structured Streaming keeps the offsets, two stages of Python do the work of a micro-batch.

    java      which Java is here                cluster   the Spark session and why each setting is what it is
    archive   Spark's classes, ready-made       stream    the micro-batch loop
    tasks     the stages in Python workers      daemon    what Python workers are forked from
    masters   who runs a job, and are they there          package   what executors of a cluster are sent of ours
    placement which partition is on which host            timeline  a batch as spans, for a profile
    planned   what is run batch after batch, planned once
    submit    the line of spark-submit          gateway   its JVM, as seen from what it has started

The only folder that imports pyspark. Importing the package itself does not.
"""
