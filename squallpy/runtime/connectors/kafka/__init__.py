"""Topics of Kafka as streams and sinks.

brokers           how brokers are reached, and what their errors mean
kafka_source      topics as sources: offsets of partitions, slices between two of them
kafka_sink        topics as sinks: a transaction for each batch, with its number
librdkafka        its consumers, called by its functions of C; native_producer, its producers
message_kernel    its messages, taken from memory as columns
messages          messages as rows: keys, tombstones, places of those at fault; avro_messages, those of Avro
encoding          rows as messages: keys and values; avro_rows, as records of Avro
inferred_columns  columns that a relation does not list, by the schemas of its topic
schema_registry   the registry that numbers schemas
entry_points      the functions by which the connector is found
"""
