"""Deltas as they travel between partitions: grouped by key, packed into bytes, hashed to their places."""
