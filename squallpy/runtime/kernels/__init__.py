"""Compiled loops over columns, key → payload pools and matrices; one set of kernels for every query, cached on disk.

    machine · hashing · arithmetic · index     what kernels are made of
    triples · reals                            sums of doubles that may be infinite or NaN
    storage · area · ahead                     memory: growable regions, whole data structures in them, room for more
    pool (layout, payloads, records, slices, blocks)   views
    sorted (tree)                              their sorted indexes, with sums of ranges
    lanes                                      columns of payloads
    expressions                                filters, keys and lanes of Arrow batches
    strings · dictionary · routing             strings ↔ integers; content hashes
    threads                                    pieces of work, shared
    tiles · sweeps                             one pass through a matrix, for any semiring that has instructions
    dense (integers) · symmetric · tropical    matrices on these; bits: packed; semirings: any two ufuncs; sparse: cells
    factors                                    updates U·Vᵀ, compressed

Kernels are compiled when they are first called and then come from numba's cache (`__pycache__` beside the
source, else the user's cache folder; `NUMBA_CACHE_DIR` overrides), so import them only where rows are about to flow.
"""
