"""The adaptive join (`adaptive-online-joins`, thesis ch. 4): decisions and routes, without Spark.

mapping               tickets → rows and columns of an (n, m)-grid; the load of a joiner; the best mapping
grid                  the joiners of a grid, whose numbers stay when it grows
joiner_groups         any number of joiners, as grids of powers of two
migration_controller  when to migrate, and when to grow
migration_transfers   the tuples a joiner keeps and sends when its grid changes, a bounded amount at a time
key_frequencies       key frequencies in bounded memory, with a bounded error
heavy_keys            keys with a grid of their own; the others are hashed
hypercube             the join matrix of many relations, in as many dimensions
heavy_cells           frequent keys of an equality on a hypercube, each cut within its dimension
band_histograms       how the values that a band join compares are spread, in bounded memory
range_partitioning    a band join by ranges of what it compares, heavy ranges each cut like a grid
cyclic_blocks         blocks of what it compares, which joiners get in turn, where values grow with time

Nothing here holds tuples: functions take numpy arrays of tickets (uint64) and return positions or masks. Decisions are
frozen values, and functions of the observed sizes.
"""
