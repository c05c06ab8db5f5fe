"""Names → relations: schema, keys, where the rows come from. What the binder looks names up in."""
