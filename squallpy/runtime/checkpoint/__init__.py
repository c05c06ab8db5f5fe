"""Exactly-once state: journals, snapshots and leases of a checkpoint folder, and recovery from them."""
