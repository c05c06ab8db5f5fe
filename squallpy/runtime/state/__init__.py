"""State that survives kills, retries and moves.

storage     where pools live: the heap, or files that processes share
store       all pools of a query, and their dictionary
partition   exactly-once batches on a store;   head · journal · snapshot · durable   what it keeps where
place       both folders of a query's partitions;   checkpoint   the durable one, and what it was made for
lease       which run has a checkpoint
"""
