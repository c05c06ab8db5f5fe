"""The pass that expands window functions into aggregates joined to the rows.

frames     the rows of a window frame, as bounds of keys
rows       the aggregates of the frame of each row
expand     each function in terms of these; the pass
"""
