"""Sinks of a run: results and changes as files, streams and devices.

sink      the protocol, and several sinks as one      cells     Arrow columns as text
files     changes or results as files, exactly once   csv       rows as RFC 4180 lines
metrics   one JSON line per batch                     lines     rows as JSON lines
late      rows that a window had passed               output    how files, streams and devices are written
changes   batch, op and columns as one table
"""
