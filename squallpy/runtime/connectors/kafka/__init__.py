"""Topics of Kafka as streams and sinks.

brokers       how brokers are reached, and what their errors mean
kafka_source  topics as sources: offsets of partitions, slices between two of them
kafka_sink    topics as sinks: a transaction for each batch, with its number
encoding      rows as messages: keys and values
"""
