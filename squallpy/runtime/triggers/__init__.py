"""Triggers at work: the statements of a stage applied to the pools of one partition."""
