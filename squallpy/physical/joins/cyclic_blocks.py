"""Blocks of values that regions get in turn, for band joins whose values grow with time.

    |x − y| <= 1, 4 joiners, 1,000 tuples of each side with each hundred values     →   blocks of 24: 0 … 23, 24 … 47, …

Bounds drawn from what came so far send all that comes later to the last region. By blocks each joiner gets a part of
every batch whose values are spread over more blocks than there are joiners. Short blocks spread a batch best, and copy
most: a tuple that is not at home is in each block that its band reaches. So the best length is found by the load.

Source: block-cyclic distribution, as of matrices in ScaLAPACK (Dongarra, van de Geijn, Walker, 1994).
"""

from collections.abc import Sequence

from squallpy.physical.joins.band_histograms import Band, Histogram
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.mapping import Mapping, Side
from squallpy.physical.joins.range_partitioning import MOST_WORK, Load, RangePartitioning, matrix_load

_SHORTEST = 4  # of the band's length a part: in shorter blocks each tuple would be at nearly all joiners
Histograms = Sequence[Histogram]
"""Histograms of both sides."""


def find_best_blocks(joiners: int, band: Band, held: Histograms, came: Histograms) -> RangePartitioning | None:
    """Find the blocks by which the busiest joiner has the least part of all tuples, and of what came with a batch.

    None if it always has much more work than in a matrix, and for doubles, whose ranks are not as far apart as they.
    """
    shortest, span = max(1, (band.high - band.low + 1) // _SHORTEST), max(each.span for each in (*held, *came))
    if band.is_real or not span:
        return None
    grids = tuple(Grid(Mapping(1, 1), joiner) for joiner in range(joiners))
    tried = [
        RangePartitioning(band, int(home), (), grids, shortest << doubled)
        for doubled in range(max(1, (span // shortest).bit_length()))
        for home in Side
    ]
    totals = [sum(each.total for each in some) for some in (held, came)]
    found = [(each, [each.load(*some) for some in (held, came)]) for each in tried]
    most = [MOST_WORK * matrix_load(joiners, band, *some).work for some in (held, came)]
    some = [
        (each, loads) for each, loads in found if all(load.work <= work for load, work in zip(loads, most, strict=True))
    ]
    return min(some, key=lambda pair: _parts(pair[1], totals), default=(None, []))[0]


def _parts(loads: Sequence[Load], totals: Sequence[float]) -> float:
    """Find the largest part of tuples that the busiest joiner has, of what is held or of what came."""
    return max((load.tuples / total for load, total in zip(loads, totals, strict=True) if total), default=0.0)
