"""Cost marks of EXPLAIN: the cost of a statement for one tuple of a delta, or of an output for one changed group."""

COST_MARKS = ("O(1)", "O(log n)", "O(slice)", "O(n)")  # from cheap to expensive
ONE, LOG, SLICE, ALL = COST_MARKS
