"""What all others stand on: payload rings, SQL types, errors with spans, settings, values as JSON. No SQL, no Spark."""
