"""Rows POSTed to a server, by the standard library.

webhook_sink  results and changes, each batch requests that have keys
"""
