"""Cost of small batches of `local`, and where it goes."""
