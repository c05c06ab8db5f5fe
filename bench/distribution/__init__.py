"""What distribution costs and gains: executors, stages, recovery."""
