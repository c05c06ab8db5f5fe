"""Sinks of a run: results and changes as files, streams and devices.

protocol       the protocols of sinks: rows of queries, and writers of batches
outputs        the sinks of a script, by query; query_output one of them, by its mode
batch_files    a folder with a file for each batch, exactly once; result_file one file
part_writer    what partitions write in parallel; written_changes what the driver is told of that
python_sink    data sources written for PySpark, and those that packages bring
output_folder  files of any Arrow file system; output_file of this host, streams and devices
file_format    csv, JSON lines and parquet
change_table   batch, op and columns as one table; upsert_table one row for each key
mode_table     the table that the mode of a sink writes
"""
