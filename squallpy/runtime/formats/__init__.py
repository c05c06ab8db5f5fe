"""Bytes ↔ Arrow: delimited text, Parquet and JSON lines, and the files that hold them."""
