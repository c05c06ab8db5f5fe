"""Source rows → deltas: filtered, exploded, projected and pre-aggregated."""
