"""Translation of a trigger program into a distributed one (`dbtoaster-batch-ivm` §4): placements, moves, stages.

location_tags          tags and the one transformer, Move, to where an expression's parts can meet
well_formed            a statement and the placements of its views  →  an expression in which they meet
simplify_transformers  the rules of Fig. 3 and 4: fewer moves, and of deltas instead of views
single_transformer     single transformer form: each move has a name; equal moves are one
statement_blocks       statements that can run in one stage, fused (App. C.3)
distributed_program    the distributed program, for all relations of a batch
result_placements      results that partitions keep and print
placement_search       placements by cost
pinned_placements      placements by the user; component_placements, by a plan put together by hand
initial_grids          placements on a grid, and its first mapping
heavy_key_placement    hashed views, with grids for heavy keys
hypercube_placement    joins of many relations on a hypercube
row_deltas             deltas that travel as rows, of which payloads are made where they arrive
driver_block           sums without keys, which the driver adds up
"""
