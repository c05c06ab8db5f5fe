"""The catalog in which the binder resolves names: relations with schema, keys and sources."""
