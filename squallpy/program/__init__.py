"""Trigger programs: the ring calculus, views, triggers and statements, before anything is placed or run."""
