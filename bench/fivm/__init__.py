"""Cofactor matrices maintained over joins, beside C++ by hand, re-evaluation by DuckDB, and the same sums in SQL."""
