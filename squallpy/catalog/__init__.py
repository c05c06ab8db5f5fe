"""The catalog in which the binder looks names up: relations with schema, keys and sources."""
