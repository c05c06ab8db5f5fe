"""Execution on Spark: Structured Streaming keeps the offsets, stages of Python workers run a micro-batch.

    java                 search for a suitable Java
    class_data_archive   class data of Spark's JVM; make_class_data_archive makes it
    spark_session        the Spark session, and the reason for each setting
    masters              names and checks of masters
    executor             the plan's partitions on workers, the result on the driver; stepped_executor, batch by batch
    stream_source        streams of Spark's own; frame_stream, streaming DataFrames
    coordinator          the driver's plan of each batch
    micro_batch_loop     Structured Streaming: a job for each batch
    planned_job          a job planned once, run many times
    worker_tasks         the stages in Python workers
    worker_daemon        the process that Python workers are forked from
    preferred_locations  hosts of partitions
    package_archive      the archive sent to executors of a cluster
    submit               the spark-submit command
    jvm_gateway          the JVM of spark-submit
    timeline             a batch as spans, for a profile
    table_functions      matrix programs in Spark SQL; sql_extension adds them to sessions without Python

The only folder that imports pyspark. Importing the package itself does not.
"""
