"""Histograms of the positions of tuples in a band join: those that readers sample, and those that joiners report."""

from collections.abc import Iterable, Mapping

import numpy as np

from squallpy.physical.joins.band_histograms import Band, Bucket, Histogram, Positions, histogram_of, summarise
from squallpy.physical.joins.mapping import Side
from squallpy.physical.plan import BandPlan, Plan, Send, Terms
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.vectors import VectorFrame
from squallpy.runtime.joiners.routing import positions_of
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.messages.deltas import Delta

PAIR_WORK = 0.1  # of a pair at a joiner, by that of a tuple that it looks up and stores
BUCKETS = 512  # of the histogram that a joiner or a reader reports of a side
SAMPLED = ("sample R", "sample S")  # by side: positions in a sample from the beginning of the first batch
SAMPLED_LATER = ("later R", "later S")  # those from its end
HELD = ("held R", "held S")  # those of all tuples
CAME = ("came R", "came S")  # those of tuples that came with the batch

Counts = Mapping[str, Mapping[str, int]]
"""Counts by buckets, as texts, of each statistic."""


def band_of(plan: BandPlan) -> Band | None:
    """Evaluate the bounds of a band; None if one has no room, or is no number."""
    low, high = (_sum(terms) for terms in (plan.low, plan.high))
    work = PAIR_WORK if plan.forms_pairs else 0.0
    if plan.is_real:
        if not np.isfinite([low, high]).all():
            return None
        low, high = np.array(sorted((low, high)), np.float64).view(np.int64).tolist()
        return Band(low, high, is_real=True, pair_work=work)
    if max(abs(low), abs(high)) >= 1 << 62:
        return None
    return Band(int(min(low, high)), int(max(low, high)), pair_work=work)


def _sum(terms: Terms) -> int | float:
    total: int | float = 0
    for sign, term in terms:
        total += sign * np.ravel(compile_expression(term)(VectorFrame(1, {})).values)[0].item()
    return total


def count_positions(positions: Positions) -> dict[str, int]:
    """Count tuples by bucket."""
    return {f"{hash} {first} {last}": count for (hash, first, last), count in summarise(positions, BUCKETS)}


def histogram_of_counts(*counts: Mapping[str, int]) -> Histogram:
    """Read a histogram from what joiners or readers have counted."""
    return histogram_of([(_read_bucket(text), count) for each in counts for text, count in each.items()])


def _read_bucket(text: str) -> Bucket:
    hash, first, last = map(int, text.split())
    return hash, first, last


def sample_positions(
    plan: Plan,
    sends: Iterable[Send],
    sent: Mapping[str, Delta],
    names: Dictionary,
    statistics: tuple[str, str] = SAMPLED,
) -> Counts:
    """Count the positions of tuples that readers send to a band join, under a name for each side."""
    band = band_of(plan.band) if plan.band else None
    if band is None or plan.band is None:
        return {}
    columns, by, found = (
        {pool.name: pool.keys for pool in plan.deltas},
        dict(plan.band.keys),
        dict[str, dict[str, int]](),
    )
    for send in sends:
        if send.side is not None and send.name in sent and send.name in by and statistics[send.side] not in found:
            positions = positions_of(sent[send.name].keys, columns[send.name], by[send.name], band, names)
            found[statistics[send.side]] = count_positions(positions)
    return found if len(found) == len(Side) else {}
