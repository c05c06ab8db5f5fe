"""State of one partition of a query.

store        all pools, one dictionary for their strings, and matrices in blocks
pool_names   what pools are called
matrices     matrices in blocks
storage      where all of it is: on the heap, or in files that processes share
"""
