"""Components → rows: `kernels/` (compiled loops over columns), `state/` (what survives), and what drives them."""
