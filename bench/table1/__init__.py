"""Table 1 of the paper, and ours."""
