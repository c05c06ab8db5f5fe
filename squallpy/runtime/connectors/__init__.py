"""Connectors: sources and sinks of servers, each with the package of its extra.

They are found by `catalog/connector_options.py`, as those of other packages are by their entry points.
"""
