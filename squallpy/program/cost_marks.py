"""Cost marks: what one tuple of a delta costs a statement, or a touched group its rows, as EXPLAIN prints it."""

COST_MARKS = ("O(1)", "O(log n)", "O(slice)", "O(n)")  # from cheap to expensive
ONE, LOG, SLICE, ALL = COST_MARKS
