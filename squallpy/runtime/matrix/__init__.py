"""Matrix programs at work: views in memory, triggers as passes over them.

views     how a matrix is stored      algebra   operations on arrays, in a semiring
packed    factors of truth values     live      a program kept fresh
source    its matrices as streams of changed cells
"""
