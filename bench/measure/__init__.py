"""Which batches are measured, what processes use, and results as they are kept."""
