"""Foundations of all rooms: payload rings, SQL types, errors with spans, settings, JSON; no SQL, no Spark."""
