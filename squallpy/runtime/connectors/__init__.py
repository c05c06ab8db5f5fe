"""Connectors: sources and sinks of servers, each with the package of its extra.

They are found by `catalog/connector_options.py`, as those of other packages are by their entry points.

kafka, postgres     topics of Kafka; tables of PostgreSQL and their changes
delta, iceberg      tables of Delta and of Iceberg
webhook             batches that are POSTed to a URL
table_format_sink   sinks of tables of open formats (Delta, Iceberg), each batch one commit that has its number
data_files          files of such tables that tasks write in parallel
table_location      locations of such tables: waiting for a storage, conflicts of writers, errors in one line
table_writer        the writer of any target whose batches are commits of the driver
backoff             pauses between attempts to reach a server that is away
"""
