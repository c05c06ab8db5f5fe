"""Models computed from maintained aggregates, as functions of arrays: regressions, mutual information, Chow-Liu trees.

A `cofactor_matrix` becomes `normal_equations`, which `least_squares` solves directly or by descent.
`mutual_information` reads counts of pairs of values, and `chow_liu` makes a tree of its results.
"""
