"""Trigger programs: the ring calculus, views, triggers and statements, independent of the execution."""
