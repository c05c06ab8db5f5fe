"""Components → rows: `kernels/` (compiled loops over columns), `state/` (partitions that survive), and who drives them."""
