"""Observers of a run: metrics, late rows and profiles of its batches."""
