"""The registry of the functions that a query can call: arguments, types, NULLs, descriptions and examples."""
