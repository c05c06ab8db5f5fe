"""Foundations of all packages: payload rings, SQL types, errors with spans, settings, JSON; no SQL, no Spark."""
