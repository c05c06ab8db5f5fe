"""State that survives: where pools live (`storage`), all pools of a query (`store`), partitions on disk (`partition`)."""
