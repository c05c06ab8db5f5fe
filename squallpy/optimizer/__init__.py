"""Rewrites of the logical plan: ordered stages of small rules, `rules/` one file a theme, `stages` the order."""
