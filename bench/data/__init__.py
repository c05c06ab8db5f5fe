"""Tables, order books and queries: the same micro-batches, row for row, for every system."""
