"""Passes over trigger programs."""
