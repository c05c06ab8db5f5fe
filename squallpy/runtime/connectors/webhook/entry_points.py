"""The functions of this connector, by the names that `catalog/connector_options.py` knows."""

from squallpy.runtime.connectors.webhook.webhook_sink import open_sink

__all__ = ["open_sink"]
