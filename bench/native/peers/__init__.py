"""Queries of TPC-H by hand in Rust, and their runs beside squallpy's."""
