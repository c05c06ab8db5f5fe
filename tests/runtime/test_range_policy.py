"""Loads of joiners of a band join after each batch, while values are even, skewed, gather at one, or grow with time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from squallpy.catalog.relation import MULT
from squallpy.physical.joins.band_histograms import Band, Histogram, Positions, histogram_of, summarise
from squallpy.physical.joins.mapping import Numbers, find_best_mapping
from squallpy.physical.joins.range_partitioning import find_best_ranges
from squallpy.runtime.joiners import range_policy
from squallpy.runtime.joiners.band_policy import BandPolicy
from squallpy.runtime.joiners.band_positions import PAIR_WORK
from squallpy.runtime.joiners.batch_plan import OnRanges
from squallpy.runtime.joiners.range_policy import RangePolicy
from squallpy.runtime.observers.join_loads import JoinLoads
from squallpy.runtime.observers.report import BatchReport
from squallpy.testing.engines import KilledEngine, PartitionedEngine

SCRIPT = """
CREATE STREAM r (x BIGINT, a BIGINT) USING csv OPTIONS (path 'r', op 'op');
CREATE STREAM s (y BIGINT, b BIGINT) USING csv OPTIONS (path 's', op 'op');
SELECT COUNT(*) AS n, SUM(a) AS total FROM r JOIN s ON ABS(x - y) <= WIDTH AND a <> b;
"""
JOINERS, ROWS, WIDTH, DOMAIN = 8, 1_200, 100, 100_000
MOST = 1.75  # of the busiest joiner's tuples by the least possible, and so many batches more
LATER = 2
BAND = Band(-WIDTH, WIDTH, pair_work=PAIR_WORK)


def values(kind: str, batch: int, count: int, draw: np.random.Generator) -> Numbers:
    if kind == "time":
        return batch * 2_000 + draw.integers(0, 2_000, count)
    if kind == "zipf":
        weights = 1 / np.arange(1, 10_001)
        return 10 * draw.choice(10_000, count, p=weights / weights.sum())
    if kind == "gather" and batch > 5:
        return np.where(draw.random(count) < 0.5, 7_777, draw.integers(0, DOMAIN, count))
    return draw.integers(0, DOMAIN, count)


def histogram(ranks: Numbers) -> Histogram:
    positions = Positions(np.zeros(len(ranks), np.uint64), ranks)
    return histogram_of(list(summarise(positions, 2_048)))


class Rows:
    """The rows of a stream that are there, of which some are taken away at random."""

    def __init__(self, names: tuple[str, str]) -> None:
        self.names, self.values, self.ids, self.count = names, np.zeros(0, np.int64), np.zeros(0, np.int64), 0

    def change(self, values: Numbers, deletes: int, draw: np.random.Generator) -> pa.Table:
        gone = draw.choice(len(self.values), min(deletes, len(self.values)), replace=False)
        ids = np.arange(self.count, self.count + len(values))
        signs = np.repeat([1, -1], [len(values), len(gone)])
        rows = [np.append(values, self.values[gone]), np.append(ids, self.ids[gone]), signs]
        self.count += len(values)
        self.values = np.append(np.delete(self.values, gone), values)
        self.ids = np.append(np.delete(self.ids, gone), ids)
        return pa.table(dict(zip((*self.names, MULT), rows, strict=True)))


@pytest.mark.parametrize(
    ("kind", "width"), [("even", WIDTH), ("zipf", WIDTH), ("gather", WIDTH), ("time", WIDTH), ("time", 5)]
)
def property_the_busiest_joiner_of_a_band_join(kind: str, width: int, tmp_path: Path) -> None:
    """Never busier than under a matrix, and near the least load there is.

    Where values grow with time blocks that joiners get in turn are found: of a batch, too, a joiner has less than on a
    grid. A band as long as a tenth of a batch's values is in two blocks or three.
    """
    band, blocks = replace(BAND, low=-width, high=width), (2.1, 0.85) if width == WIDTH else (1.35, 0.5)
    draw, engine = np.random.default_rng(3), PartitionedEngine(JOINERS, join_operator="Range")
    engine.start(SCRIPT.replace("WIDTH", str(width)), tmp_path, {})
    r, s, loads = Rows(("x", "a")), Rows(("y", "b")), JoinLoads(engine._compiled.plan)
    for batch in range(18):
        rows = {"r": ROWS, "s": ROWS // 2}
        deletes = 0 if batch < 9 else ROWS
        engine.push({
            name: of.change(values(kind, batch, rows[name], draw), deletes if name == "r" else 0, draw)
            for name, of in (("r", r), ("s", s))
        })  # fmt: skip
        (load,) = loads.note(BatchReport.of({**engine.stats, **engine.figures}))
        joiners = engine.stats["joiners"].values()
        busiest, came = (max(j[a] + j[b] for j in joiners) for a, b in ("RS", "rs"))
        assert (load.kind, load.ilf) == ("ranges", busiest)
        _, least = find_best_ranges(JOINERS, band, histogram(r.values), histogram(s.values))
        arriving = find_best_mapping(JOINERS, rows["r"] + deletes, rows["s"]).load(rows["r"] + deletes, rows["s"])
        if batch > 4:
            matrix = find_best_mapping(JOINERS, len(r.values), len(s.values)).load(len(r.values), len(s.values))
            assert busiest <= 1.4 * matrix + LATER * ROWS
            most, part = blocks if kind == "time" else (MOST, 1.25)
            assert busiest <= most * least.tuples + (LATER * ROWS if batch in range(6, 10) else 0)
            assert came <= part * arriving or (kind == "gather" and batch < 10)
    assert (engine.policy.plan.ranges.block > 0) == (kind == "time")
    assert engine.policy.drawn >= 1


@pytest.mark.parametrize(("width", "kind"), [(100, "ranges"), (60_000, "grid")])
def test_ranges_are_chosen_where_a_band_is_narrow(width: int, kind: str, tmp_path: Path) -> None:
    draw, engine = np.random.default_rng(3), KilledEngine(JOINERS, kills=0.0)
    engine.start(SCRIPT.replace("WIDTH", str(width)), tmp_path, {})
    r, s, loads = Rows(("x", "a")), Rows(("y", "b")), JoinLoads(engine._compiled.plan)
    for batch in range(2):
        engine.push({"r": r.change(values("even", batch, ROWS, draw), 0, draw),
                     "s": s.change(values("even", batch, ROWS, draw), 0, draw)})  # fmt: skip
    coordinator = engine._coordinator
    assert coordinator and coordinator.policy
    held = dict.fromkeys(("R", "S", "r", "s", "r bytes", "s bytes"), 0)
    figures = coordinator.policy.figures({"joiners": {str(joiner): held for joiner in range(JOINERS)}})
    (load,) = loads.note(BatchReport.of(figures))
    assert load.kind == kind and (len(load.mapping) == JOINERS) == (kind == "ranges")


def joined(r: Rows, s: Rows) -> tuple[int, int]:
    """Count the pairs that the query joins, and sum up their ids."""
    ordered, there = np.sort(s.values), dict(zip(s.ids.tolist(), s.values.tolist(), strict=True))
    low, high = np.searchsorted(ordered, r.values - WIDTH, "left"), np.searchsorted(ordered, r.values + WIDTH, "right")
    alike = [abs(x - there.get(a, 1 << 40)) <= WIDTH for x, a in zip(r.values.tolist(), r.ids.tolist(), strict=True)]
    pairs = high - low - np.array(alike, np.int64)
    return int(pairs.sum()), int((pairs * r.ids).sum())


@pytest.mark.parametrize("turns", [1, 2])
def oracle_ranges_that_follow_a_grid(turns: int, tmp_path: Path) -> None:
    """A join begins on a grid, as one stream has no rows yet; that migrates, and gives way to ranges, over kills."""
    draw, engine = np.random.default_rng(4), KilledEngine(JOINERS, kills=0.01)
    engine.start(SCRIPT.replace("WIDTH", str(WIDTH)), tmp_path, {})
    r, s, epochs = Rows(("x", "a")), Rows(("y", "b")), list[int]()
    sizes = [(3_000, 0), (3_000, 0), *[(200, 1_500)] * 6 * turns, *[(800, 800)] * 6]
    for batch, (of_r, of_s) in enumerate(sizes):
        given = {
            "r": r.change(values("even", batch, of_r, draw), 100 if batch > 4 else 0, draw),
            "s": s.change(values("even", batch, of_s, draw), 50 if batch > 4 else 0, draw),
        }
        engine.push(given)
        assert engine._coordinator and isinstance(engine._coordinator.policy, BandPolicy)
        plan = engine._coordinator.policy.plan
        epochs.append(plan.epoch)
        (row,) = engine.result().to_pylist()
        assert (row["n"], row["total"] or 0) == joined(r, s)
    policy = engine._coordinator.policy
    assert policy.is_decided and len(policy.plan.ranges.grids) > 1 and epochs[-1] > 0, epochs


def oracle_blocks_of_values_that_grow(tmp_path: Path) -> None:
    """Blocks follow ranges, and ranges blocks when values no longer grow; rows come and go meanwhile, over kills."""
    draw, engine = np.random.default_rng(4), KilledEngine(JOINERS, kills=0.01)
    engine.start(SCRIPT.replace("WIDTH", str(WIDTH)), tmp_path, {})
    r, s, was = Rows(("x", "a")), Rows(("y", "b")), list[int]()
    for batch in range(20):
        kind = "time" if batch < 12 else "even"
        engine.push({
            "r": r.change(values(kind, batch, 900, draw), 100 if batch > 4 else 0, draw),
            "s": s.change(values(kind, batch, 700, draw), 900 if batch > 13 else 50, draw),
        })  # fmt: skip
        assert engine._coordinator and engine._coordinator.policy
        plan = engine._coordinator.policy.plan
        was.append(plan.ranges.block if isinstance(plan, OnRanges) else -1)
        (row,) = engine.result().to_pylist()
        assert (row["n"], row["total"] or 0) == joined(r, s)
    assert any(block > 0 for block in was) and was[-1] != was[10], was


def oracle_ranges_that_move_in_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Values come to be elsewhere, and rows are joined by the old ranges and the new ones meanwhile, over kills."""
    monkeypatch.setattr(range_policy, "MOST_MOVED", 100)
    draw, engine = np.random.default_rng(4), KilledEngine(JOINERS, kills=0.01)
    engine.start(SCRIPT.replace("WIDTH", str(WIDTH)), tmp_path, {})
    r, s, steps, shared = Rows(("x", "a")), Rows(("y", "b")), list[int](), 0
    for batch in range(24):
        low, high = (0, 20_000) if batch < 6 else (15_000, 60_000)
        engine.push({
            "r": r.change(draw.integers(low, high, 900), 300 if batch > 4 else 0, draw),
            "s": s.change(draw.integers(low, high, 700), 400 if batch > 6 else 50, draw),
        })  # fmt: skip
        assert engine._coordinator
        policy = engine._coordinator.policy
        assert isinstance(policy, RangePolicy)
        steps.append(len(policy.steps))
        shared += policy.plan.ranges.shares_joiners
        (row,) = engine.result().to_pylist()
        assert (row["n"], row["total"] or 0) == joined(r, s)
    assert max(steps) > 2 and shared and steps[-1] < max(steps), steps
