"""Delta tables in and out, without Spark.

delta_log     versions of a table: what each has added, and whether it took rows away
delta_source  streams and tables as sources
delta_sink    results and changes, each batch one commit that has its number
data_files    files that tasks write in parallel, with their statistics
entry_points  the functions by which the connector is found
"""
