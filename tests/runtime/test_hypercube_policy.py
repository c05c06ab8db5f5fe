"""Parts of a hypercube while its relations grow and shrink: the load by that with the best parts."""

import numpy as np
import pytest

from squallpy.physical.joins.hypercube import find_best_hypercube
from squallpy.runtime.joiners.batch_plan import OnHypercube
from squallpy.runtime.joiners.hypercube_policy import HypercubePolicy

BATCH = 0.01  # of the tuples that are held


@pytest.mark.parametrize(("joiners", "relations"), [(8, 3), (64, 4), (256, 5)])
@pytest.mark.parametrize("has_deletes", [False, True])
def property_the_load_of_a_hypercube(joiners: int, relations: int, has_deletes: bool) -> None:
    """Also where one relation grows while another shrinks, so that all tuples stay as many."""
    draw, most, moved = np.random.default_rng(joiners), 0.0, 0
    views = tuple((f"M_{at}", (at,)) for at in range(relations))
    held = draw.integers(1_000, 5_000, relations).astype(float)
    cube = find_best_hypercube(joiners, relations, [(size, on) for size, (_, on) in zip(held, views, strict=True)])
    policy, rates = HypercubePolicy(OnHypercube(cube), views, 1.0), np.ones(relations) / relations
    for batch in range(600):
        if batch % 40 == 0:
            rates = draw.random(relations) ** 4
            rates /= rates.sum()
        change = rates * held.sum() * BATCH
        if has_deletes:
            change -= held * BATCH * draw.random(relations) * 2
        held = np.maximum(1.0, held + change)
        sizes = {view: size / policy.plan.cube.cuts(on) for size, (view, on) in zip(held, views, strict=True)}
        stats = {"joiners": {str(joiner): {**sizes, "R": 1, "S": 1} for joiner in range(joiners)}}
        most = max(most, policy.figures(stats)["ilf_ratio"])
        policy = policy.observe(stats)
        moved += policy.plan.to is not None
    assert 1.15 < most < 1.3 and moved < 40, (most, moved)
