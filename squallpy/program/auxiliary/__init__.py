"""Auxiliary relations: rows computed from the groups of a view, for other views to join, one file a kind."""
