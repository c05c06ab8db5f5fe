"""PostgreSQL in and out.

connection       how a server is reached, and what its errors mean
tables           what a server says of tables: columns, keys, publications
pgoutput         messages of logical replication as rows
wal_receiver     a thread that receives transactions as they are committed
slot_log         a replication slot as a log that the streams of a script share, behind a snapshot
snapshot         rows of tables as they are, copied whole
postgres_source  streams and tables as sources
postgres_sink    results and changes, each batch in one transaction
slots            slots that were left behind
entry_points     the functions by which the connector is found
"""
