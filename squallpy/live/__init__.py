"""Sessions: streams, views that live together, and statements that add, look into and drop them between batches."""
