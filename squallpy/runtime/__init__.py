"""Execution of plans: `kernels/` (compiled loops over columns), `state/` (pools and matrices), and the executors."""
