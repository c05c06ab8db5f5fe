"""State of one partition of a query.

state_store    all pools, one dictionary for their strings, and matrices in blocks
pool_names     what pools are called
mirrors        copies of records that follow them from batch to batch
matrix_blocks  matrices in blocks
pool_storage   where all of it is: on the heap, or in files that processes share
"""
