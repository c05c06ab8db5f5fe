"""Rows of auxiliary relations, kept fresh from the groups of a view, one file a kind."""
