"""The pass that expands window functions into aggregates joined to the rows.

frames     the rows that a function looks at, as sets of keys
rows       the aggregates of all rows of a frame, for each row
expand     what each function is made of; the pass
"""
