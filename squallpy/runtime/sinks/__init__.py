"""Sinks of a run: results and changes as files, streams and devices.

protocol      the protocol of sinks
file_sinks    changes or results as files, exactly once
output_file   how files, streams and devices are written
change_table  batch, op and columns as one table
"""
