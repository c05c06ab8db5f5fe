"""Compiled loops over columns, key → payload pools and matrices; one set of kernels for every query, cached on disk.

    intrinsics · hashing · ring_arithmetic · hash_index           what kernels are made of
    count_triples · real_sums · packed_reals                      sums of doubles; several at once
    memory_regions · memory_area · memory_prefault                growable regions, whole data structures in them
    view_container · pool · sorted_pool · row_list                views
    pool_layout · pool_records · postings · buddy_allocator       what a pool is made of
    record_exchange · fixpoint_steps                              records that take others' places; semi-naive iteration
    grouped_rows · grouped_tasks · grouped_steps · grouped_batch  fixpoints of groups, and their iteration
    grouped_blocks · grouped_nodes · grouped_changes              what is gathered for a node, and done in its table
    grouped_entries · grouped_contents                            what grouped rows are made of
    numbered_keys                                                 keys by small numbers
    arena_tables · line_comparison                                small hash tables in one arena
    primary_index · group_index · run_index · stored_keys         entries for each record, or for runs of them; its key
    order_index                                                   records in the order of ascending keys
    stored_payloads · stored_records                              its payload; both as arrays
    slice_lookup · counted_records                                lookups by some columns; rows added to views of sums
    page_watch                                                    pages of a pool that were written
    sorted_index (tree)                                           sorted indexes of pools, with sums of ranges
    first_groups                                                  the first rows of an ordered result
    payload_columns · payload_arithmetic · payload_products       lanes of views
    payload_sums                                                  the sum of many payloads
    cofactor_blocks · cofactor_lifting                            elements of the cofactor ring
    cofactor_products · cofactor_tiles · cofactor_sums            their products, and sums of these
    monomial_sums                                                 those of a degree above 1
    statement_steps · batch_expressions · radix_sort              statements over pools; rows of Arrow batches
    string_columns · dictionary · content_hash · column_packing   strings ↔ integers; hashes of contents; rows as bytes
    kernel_compiler · kernel_precompilation · threads             compilation; pieces of work, shared
    trigger_steps · block_steps · range_steps · sorted_steps      what triggers that are compiled (`codegen`) call:
    text_steps · real_steps · real_lanes · look_ahead             steps over rows, payloads, indexes and values
    delta_records                                                 records of a delta
    batch_driver · c_functions · touched_groups · key_marks       all of a batch; its groups, how many keys it has
    matrix                                                        passes through matrices, and updates of them

Kernels are compiled when they are first called and then come from numba's cache (`__pycache__` beside the
source, else the user's cache folder; `NUMBA_CACHE_DIR` overrides), so import them only where rows are about to flow.
"""
