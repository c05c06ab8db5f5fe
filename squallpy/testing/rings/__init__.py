"""Rings whose elements are Python objects: oracles of those that have kernels.

abstract_ring   what a view tree needs of a ring; formal sums
relational      relations, with union and join
matrix_chain    matrices by their cells, whose products do not commute
"""
