"""Migrations between grids: who keeps, who sends."""

from functools import partial

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.physical.joins.grid import Grid, single_joiner_grid
from squallpy.physical.joins.mapping import Mapping, Numbers, Side, Tickets
from squallpy.physical.joins.migration_transfers import Migration, TransferProgress
from squallpy.testing.joins.streams import of_sides


def mappings(bits: int) -> st.SearchStrategy[Mapping]:
    return st.integers(0, bits).map(lambda a: Mapping(1 << a, 1 << bits - a))


@st.composite
def grids(draw: st.DrawFn) -> tuple[Grid, Grid]:
    """Two grids between which an operator may migrate: other mappings, growth, promotion, demotion."""
    bits = draw(st.integers(0, 4))
    grid = Grid(draw(mappings(bits)), draw(st.integers(0, 3)))
    if draw(st.booleans()):
        grid, bits = grid.grow(draw(mappings(bits + 2))), bits + 2
        grid = grid.remap(draw(mappings(bits)))
    match draw(st.sampled_from(["map", "grow", "promote", "demote"])):
        case "map":
            return grid, grid.remap(draw(mappings(bits)))
        case "grow":
            return grid, grid.grow(draw(mappings(bits + 2)))
        case "promote":
            return single_joiner_grid(draw(st.sampled_from(grid.numbers.tolist()))), grid
        case _:
            return grid, single_joiner_grid(draw(st.sampled_from(grid.numbers.tolist())))


def held(grid: Grid, side: Side, tickets: Tickets) -> dict[int, set[int]]:
    return {int(j): set(np.flatnonzero(grid.owns(int(j), side, tickets)).tolist()) for j in grid.numbers}


@settings(max_examples=60)
@given(grids(), st.integers(0, 2**32))
def property_every_tuple_arrives_once(pair: tuple[Grid, Grid], seed: int) -> None:
    migration, tickets = Migration(*pair), of_sides(np.zeros(40, np.int8), seed).tickets
    for side in Side:
        before, after = held(migration.old, side, tickets), held(migration.new, side, tickets)
        got: dict[int, list[int]] = {joiner: [] for joiner in after}
        for joiner, mine in before.items():
            some = np.array(sorted(mine), np.int64)
            kept = some[migration.keeps(joiner, side, tickets[some])]
            if joiner in got:
                got[joiner] += kept.tolist()
            else:
                assert not len(kept)
            for target, positions in migration.parcels(joiner, side, tickets[some]):
                assert target in migration.receivers(joiner, side)
                assert joiner in migration.senders(target, side)
                got[target] += some[positions].tolist()
        assert {joiner: sorted(positions) for joiner, positions in got.items()} == {
            joiner: sorted(positions) for joiner, positions in after.items()
        }


@given(grids(), st.integers(0, 2**32))
def property_dealt_is_what_is_kept_and_sent(pair: tuple[Grid, Grid], seed: int) -> None:
    migration, tickets = Migration(*pair), of_sides(np.zeros(40, np.int8), seed).tickets
    for side in Side:
        for joiner, mine in held(migration.old, side, tickets).items():
            some = tickets[np.array(sorted(mine), np.int64)]
            sent = {target: rows.tolist() for target, rows in migration.parcels(joiner, side, some)}
            kept = np.flatnonzero(migration.keeps(joiner, side, some)).tolist()
            dealt = dict[int, list[int]]()
            for joiners, rows in migration.partition_tuples(joiner, side, partial(np.copy, some)):
                assert (rows is None) == migration.moves_whole(side)
                dealt |= dict.fromkeys(joiners, list(range(len(some))) if rows is None else rows.tolist())
            assert {j: rows for j, rows in dealt.items() if rows} == sent | ({joiner: kept} if kept else {})


@given(grids())
def property_growth_keeps_numbers(pair: tuple[Grid, Grid]) -> None:
    for grid in pair:
        cells = {
            (r, c) for r, c in zip(*(grid.coordinates_of(side, grid.numbers).tolist() for side in Side), strict=True)
        }
        assert len(cells) == grid.joiners
        targets = grid.targets(Side.R, of_sides(np.zeros(30, np.int8)).tickets)
        assert grid.has(targets).all()


def received(migration: Migration) -> dict[int, list[int]]:
    return {int(j): migration.senders(int(j), Side.R).tolist() for j in migration.new.numbers}


def golden_figure_3() -> None:
    """(8, 2) → (4, 4): joiners 1 and 3, 2 and 4, 5 and 7, 6 and 8 … exchange R; |R|/8 each way; nothing of S moves."""
    migration = Migration(Grid(Mapping(8, 2)), Grid(Mapping(4, 4)))
    assert received(migration) == {j: [j ^ 2] for j in range(16)}
    assert not any(len(migration.receivers(j, Side.S)) for j in range(16))
    assert migration.cost(r=8, s=1000) == 2  # |R| / 4
    tickets = of_sides(np.zeros(100, np.int8)).tickets
    mine = np.flatnonzero(migration.old.owns(0, Side.S, tickets))
    kept = mine[migration.keeps(0, Side.S, tickets[mine])]
    assert (tickets[mine] < 2**63).all() and (tickets[kept] < 2**62).all() and 0 < len(kept) < len(mine)


def golden_figure_4b() -> None:
    """4 joiners to 16: each sends to three new ones, and half of either relation to itself, so to say."""
    migration = Migration(Grid(Mapping(2, 2)), Grid(Mapping(2, 2)).grow(Mapping(4, 4)))
    assert received(migration) == {j: [] if j < 4 else [j % 4] for j in range(16)}
    # a half of R twice, the other half once; S alike: within the 2 (|R|/n + |S|/m) of Theorem 4.4.3
    assert migration.send_cost(r=2, s=0) == 1.5 and migration.cost(r=2, s=2) == 3


@given(st.integers(1, 10), st.data())
def property_lemma_4_4(bits: int, data: st.DataObject) -> None:
    a = data.draw(st.integers(1, bits))
    old, new = Mapping(1 << a, 1 << bits - a), Mapping(1 << a - 1, 2 << bits - a)
    assert Migration(Grid(old), Grid(new)).cost(r=1000, s=77) == 2 * 1000 / old.rows
    assert Migration(Grid(new), Grid(old)).cost(r=1000, s=77) == 2 * 77 / new.columns


@given(grids(), st.integers(0, 2**32))
def property_costs_are_what_is_sent(pair: tuple[Grid, Grid], seed: int) -> None:
    """With as many tuples in each of the finest parts, costs are counts."""
    migration = Migration(*pair)
    tickets = np.arange(0, 2**64, 2**54, dtype=np.uint64)
    sent: Numbers = np.zeros(300, np.int64)
    got: Numbers = np.zeros(300, np.int64)
    for joiner in migration.old.numbers.tolist():
        for side in Side:
            mine = tickets[migration.old.owns(joiner, side, tickets)]
            for target, positions in migration.parcels(joiner, side, mine):
                sent[joiner] += len(positions)
                got[target] += len(positions)
    size = len(tickets)
    assert migration.send_cost(size, size) == sent.max()
    assert migration.cost(size, size) == (sent + got).max()


@given(st.integers(0, 1000), st.lists(st.integers(0, 20)), st.integers(1, 5))
def property_progress_ends_and_is_bounded(total: int, received: list[int], floor: int) -> None:
    progress = TransferProgress(total)
    for tuples in received:
        after = progress.step(tuples, floor=floor)
        assert after.sent - progress.sent <= max(2 * tuples, floor)
        progress = after
    assert progress.sent == min(total, sum(max(2 * tuples, floor) for tuples in received))
    for _ in range(total):
        progress = progress.step(0, floor=floor)
    assert progress.is_done
