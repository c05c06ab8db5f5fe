"""The functions of this connector, by the names that `catalog/connector_options.py` knows."""

from squallpy.runtime.connectors.delta.delta_sink import open_sink
from squallpy.runtime.connectors.delta.delta_source import infer, open_source

__all__ = ["infer", "open_sink", "open_source"]
