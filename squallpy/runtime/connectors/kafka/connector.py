"""The functions of this connector, by the names that `catalog/connectors.py` knows."""

from squallpy.runtime.connectors.kafka.kafka_source import infer, open_source

__all__ = ["infer", "open_source"]
