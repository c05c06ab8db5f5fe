"""Topics of Kafka as streams and sinks.

brokers       how brokers are reached, and what their errors mean
kafka_source  topics as sources: offsets of partitions, slices between two of them
kafka_sink    topics as sinks: a transaction for each batch, with its number
librdkafka    its consumers, called by its functions of C: messages are columns at once; native_… its producers
messages      messages as rows: keys, tombstones, places of those at fault
encoding      rows as messages: keys and values
avro_…        records of Avro: programs that decode them, schemas that rows are written by
inferred_…    columns that a relation does not list, by the schemas of its topic
schema_…      the registry that numbers schemas
"""
