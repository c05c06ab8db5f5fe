"""Compiled passes through matrices: products, and updates U·Vᵀ in place, over any semiring.

tiles · sweeps                                   one pass through a matrix, for any semiring with instructions
dense (integer_products) · symmetric · tropical  matrices on these
boolean                                          matrices of bits, packed
semirings · sparse                               any two ufuncs; cells
factored_updates                                 updates U·Vᵀ, compressed
"""
