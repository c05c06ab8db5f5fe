"""Compiled loops over columns, key → payload pools and matrices; one set of kernels for every query, cached on disk.

    intrinsics · hashing · arithmetic · hash_index   what kernels are made of
    triples · reals                                  sums of doubles that may be infinite or NaN
    regions · area · prefault                        memory: growable regions, whole data structures in them
    container · pool · sorted_pool · row_list        views; pool: layout, payloads, records, postings, buddy
    sorted_index (tree)                              sorted indexes of pools, with sums of ranges
    lanes · products                                 columns of payloads, and their products
    steps · expressions · radix_sort                 statements over pools; filters, keys and lanes of Arrow batches
    strings · dictionary · content_hash · packing    strings ↔ integers; hashes of contents; rows as bytes
    compiled · cache · threads                       compilation; pieces of work, shared
    tiles · sweeps                                   one pass through a matrix, for any semiring with instructions
    dense (integers) · symmetric · tropical · bits   matrices on these, bits packed
    semirings · sparse                               any two ufuncs; cells
    factors                                          updates U·Vᵀ, compressed

Kernels are compiled when they are first called and then come from numba's cache (`__pycache__` beside the
source, else the user's cache folder; `NUMBA_CACHE_DIR` overrides), so import them only where rows are about to flow.
"""
