"""The functions of this connector, by the names that `catalog/connector_options.py` knows."""

from squallpy.runtime.connectors.kafka.inferred_columns import infer
from squallpy.runtime.connectors.kafka.kafka_sink import open_dead_letters, open_sink
from squallpy.runtime.connectors.kafka.kafka_source import open_source

__all__ = ["infer", "open_dead_letters", "open_sink", "open_source"]
