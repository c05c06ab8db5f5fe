"""Translation of a trigger program into a distributed one (`dbtoaster-batch-ivm` §4): placements, moves, stages.

locations   tags and the one transformer, Move: to an expression whose parts can meet
wellformed  a statement and the places of its views  →  a statement in which they meet
transform   the rules of Fig. 3 and 4: fewer moves, and of deltas
single      single transformer form: what is moved has a name; equal moves are one
blocks      statements that can run in one stage, fused (App. C.3)
program     all of that, for all relations of a batch
choose      where each view is, by cost
grid        where views are with a join operator, and the grid that they begin with
heavy       what is hashed, with grids for keys that turn out heavy
"""
