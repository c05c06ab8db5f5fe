"""Maintenance of the rows of auxiliary relations from the groups of a view, one file a kind."""
