"""Rows by Spark: Structured Streaming keeps the offsets, two stages of Python do the work of a micro-batch.

    java      which Java is here                cluster   the Spark session and why each setting is what it is
    archive   Spark's classes, ready-made       stream    the micro-batch loop
    tasks     the two stages in Python workers  daemon    what Python workers are forked from

The only folder that imports pyspark. Importing the package itself does not.
"""
