"""Trigger program → components: how statements reach their views, where views live, which columns sources deliver."""
