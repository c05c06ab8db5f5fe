"""Iceberg tables in and out, without Spark.

catalogs        catalogs and their tables, and what their errors mean
iceberg_source  streams and tables as sources
iceberg_sink    results and changes, each batch one commit that has its number
data_files      files that tasks write in parallel, appended by such a commit
entry_points    the functions by which the connector is found
"""
