"""Topics of Kafka as streams.

brokers       how brokers are reached, and what their errors mean
kafka_source  topics as sources: offsets of partitions, slices between two of them
"""
