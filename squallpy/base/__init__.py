"""What all others stand on: payload rings, SQL types, errors with spans, settings. No SQL, no Spark."""
