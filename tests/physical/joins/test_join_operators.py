"""The operators: each pair of equal keys meets once, migrations move what routes say, and no joiner is overwhelmed."""

import json
from collections import defaultdict
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.json_codec import from_json, to_json
from squallpy.physical.joins.heavy_keys import HeavyKeys, initial_heavy_keys
from squallpy.physical.joins.key_frequencies import Keys
from squallpy.physical.joins.mapping import Mapping, Side, Tickets
from squallpy.physical.joins.migration_controller import Controller, Policy, Sizes, initial_controller
from squallpy.testing.joins.join_operators import NAMES, Dynamic, Move, Operator, Static, create_operator
from squallpy.testing.joins.streams import hash_keys, of_sides, zipf_keys

T = TypeVar("T")


class Placed:
    """Tuples with their keys, at joiners: moved by migrations only."""

    def __init__(self, chosen: Operator) -> None:
        self.operator = chosen
        self.keys: list[Keys] = [np.empty(0, np.uint64)] * 2
        self.tickets: list[Tickets] = [np.empty(0, np.uint64)] * 2
        self.at: list[dict[int, set[int]]] = [defaultdict(set), defaultdict(set)]
        self.moves: list[Move] = []

    def batch(self, side: Side, keys: Keys, seed: int) -> None:
        tickets, start = of_sides(np.zeros(len(keys), np.int8), seed).tickets, len(self.keys[side])
        self.keys[side] = np.concatenate([self.keys[side], keys])
        self.tickets[side] = np.concatenate([self.tickets[side], tickets])
        ones = np.ones(len(keys), np.int64)
        self.operator = self.operator.observe(side, keys, ones, ones)
        routes = self.operator.route(side, keys, tickets)
        for position, joiner in zip(routes.positions.tolist(), routes.joiners.tolist(), strict=True):
            self.at[side][joiner].add(start + position)

    def decide(self) -> None:
        self.operator, moves = self.operator.decide()
        for move in moves:
            for side in Side:
                self._move(side, move)
            self.operator = self.operator.finish(move)
        self.moves += moves

    def _move(self, side: Side, move: Move) -> None:
        arrived: list[tuple[int, int]] = []
        for joiner, there in self.at[side].items():
            mine = np.array(sorted(there), np.int64)
            if move.key is not None:
                mine = mine[self.keys[side][mine] == np.uint64(move.key)]
            if not len(mine):
                continue
            tickets = self.tickets[side][mine]
            for target, positions in move.migration.parcels(joiner, side, tickets):
                arrived += [(target, position) for position in mine[positions].tolist()]
            there -= set(mine[~move.migration.keeps(joiner, side, tickets)].tolist())
        for joiner, position in arrived:
            assert position not in self.at[side][joiner], "a tuple was sent to where it is"
            self.at[side][joiner].add(position)

    def check(self) -> None:
        """Tuples are where the routes would bring them now, and each pair of equal keys is at one joiner."""
        for side in Side:
            routes = self.operator.route(side, self.keys[side], self.tickets[side])
            there: dict[int, set[int]] = defaultdict(set)
            for position, joiner in zip(routes.positions.tolist(), routes.joiners.tolist(), strict=True):
                there[joiner].add(position)
            assert there == {joiner: held for joiner, held in self.at[side].items() if held}
        equal = self.keys[0][:, None] == self.keys[1]
        met = np.zeros(equal.shape, np.int64)
        for joiner, held in self.at[0].items():
            met[np.ix_(sorted(held), sorted(self.at[1][joiner]))] += 1
        assert (met[equal] == 1).all()


BATCHES = st.lists(
    st.tuples(st.sampled_from(Side), st.integers(1, 60), st.sampled_from([0.0, 1.0, 3.0])), min_size=1, max_size=8
)


@settings(max_examples=60)
@given(st.sampled_from(NAMES), st.sampled_from([1, 2, 8]), BATCHES)
def property_pairs_meet_and_state_follows_routes(
    name: str, joiners: int, batches: list[tuple[Side, int, float]]
) -> None:
    placed = Placed(create_operator(name, joiners, sizes=Sizes(100, 50), fraction=0.5))
    for i, (side, length, z) in enumerate(batches):
        placed.batch(side, zipf_keys(length, 6, z, i), i)
        placed.decide()
        placed.check()


def test_promotion_and_demotion() -> None:
    """A key gets hot and has a grid; others come, by which it is light again, and its grid is left."""
    placed = Placed(create_operator("Hybrid", 8, fraction=0.25))
    placed.batch(Side.R, hash_keys(np.zeros(60, np.int64)), 1)
    placed.batch(Side.S, hash_keys(np.zeros(4, np.int64)), 2)
    placed.decide()
    placed.check()
    assert [(m.migration.old.joiners, m.migration.new.mapping) for m in placed.moves] == [(1, Mapping(8, 1))]
    for seed in range(3):
        placed.batch(Side.R, hash_keys(np.arange(1, 900)), 10 + seed)
        placed.batch(Side.S, hash_keys(np.arange(1, 900)), 20 + seed)
    for key in range(1, 5):
        placed.batch(Side.S, hash_keys(np.full(120, key)), 30 + key)
        placed.batch(Side.R, hash_keys(np.full(120, key)), 40 + key)
    placed.decide()
    placed.check()
    demoted = [m for m in placed.moves if m.migration.new.joiners == 1]
    assert [m.key for m in demoted] == hash_keys(np.zeros(1, np.int64)).tolist()
    placed.decide()
    assert demoted[0].key not in {k.key for k in placed.operator.keys.keys}  # type: ignore[attr-defined]


def test_hysteresis() -> None:
    """A key at the limit is not moved to and fro."""
    placed = Placed(create_operator("Hybrid", 4, fraction=0.25))
    rng = np.random.default_rng(0)
    for seed in range(40):
        placed.batch(Side.R, hash_keys(rng.integers(0, 12, 40)), seed)
        placed.batch(Side.S, hash_keys(rng.integers(0, 12, 2)), 100 + seed)
        placed.decide()
    by_key = [m.key for m in placed.moves if 1 in (m.migration.old.joiners, m.migration.new.joiners)]
    assert len(by_key) == len(set(by_key)) > 0


@pytest.mark.parametrize("z", [0, 0.25, 0.5, 0.75, 1.0])
@pytest.mark.parametrize("keys", [1000, 10_000])
def test_nobody_is_busy_under_hybrid(keys: int, z: float) -> None:
    """16 joiners, a foreign key by Zipf's law: the busiest has at most 1.25 times the mean, at any skew."""
    chosen = create_operator("Hybrid", 16)
    batches = np.split(zipf_keys(200_000, keys, z), 20)
    for batch, primary in zip(batches, np.array_split(np.arange(keys), 20), strict=True):
        for side, some in ((Side.R, batch), (Side.S, hash_keys(np.arange(keys))[primary])):
            chosen = chosen.observe(side, some, np.ones(len(some), np.int64), np.ones(len(some), np.int64))
        chosen, moves = chosen.decide()
        for move in moves:
            chosen = chosen.finish(move)
    loads = {}
    for name, one in (("Hybrid", chosen), ("SHJ", create_operator("SHJ", 16))):
        of_r = one.route(Side.R, np.concatenate(batches), of_sides(np.zeros(200_000, np.int8)).tickets).joiners
        of_s = one.route(Side.S, hash_keys(np.arange(keys)), of_sides(np.zeros(keys, np.int8), 1).tickets).joiners
        loads[name] = np.bincount(of_r, minlength=16) + np.bincount(of_s, minlength=16)
    assert loads["Hybrid"].max() <= 1.25 * loads["Hybrid"].mean()
    assert loads["Hybrid"].max() <= 1.2 * loads["SHJ"].max()
    assert z < 1 or loads["SHJ"].max() > 2 * loads["SHJ"].mean()


def test_a_key_with_all_the_rows() -> None:
    chosen = create_operator("Hybrid", 16)
    keys, ones = hash_keys(np.zeros(5000, np.int64)), np.ones(5000, np.int64)
    for side in Side:
        chosen = chosen.observe(side, keys, ones, ones)
    chosen, moves = chosen.decide()
    assert [m.migration.new.mapping for m in moves] == [Mapping(4, 4)]
    loads = np.bincount(chosen.route(Side.R, keys, of_sides(np.zeros(5000, np.int8)).tickets).joiners)
    assert loads.max() < 1.1 * loads.mean()


def test_deletes_make_keys_light() -> None:
    state, keys = initial_heavy_keys(4, 0.5), hash_keys(np.zeros(500, np.int64))
    ones = np.ones(500, np.int64)
    state, moves = state.observe(Side.R, keys, ones).decide()
    assert len(moves) == 1
    state = state.finish(moves[0][0]).observe(Side.R, keys, -ones)
    state, moves = state.decide()
    assert [m.new.joiners for _, m in moves] == [1] and state.finish(moves[0][0]).keys == ()


def test_static_grids() -> None:
    mid, opt = create_operator("StaticMid", 64), create_operator("StaticOpt", 64, sizes=Sizes(1, 64))
    assert isinstance(mid, Static) and mid.grid.mapping == Mapping(8, 8)
    assert isinstance(opt, Static) and opt.grid.mapping == Mapping(1, 64)


def test_groups_visit() -> None:
    """Each tuple is joined in both groups and stored in one."""
    tickets = of_sides(np.zeros(1000, np.int8)).tickets
    routes = create_operator("Dynamic", 20).route(Side.R, tickets, tickets)
    assert np.bincount(routes.positions).tolist() == [4 + 2] * 1000  # a row of each group
    stored = np.bincount(routes.positions[routes.stored])
    assert set(stored.tolist()) == {4, 2}
    assert 750 < (stored == 4).sum() < 850


@pytest.mark.parametrize(("name", "joiners"), [("Dynamic", 0), ("SHJ", -1), ("Fastest", 4), ("StaticOpt", 4)])
def test_bad_choices(name: str, joiners: int) -> None:
    with pytest.raises(ValueError):
        create_operator(name, joiners)


def test_groups_do_not_grow() -> None:
    """The numbers of new joiners would be those of the next group."""
    with pytest.raises(ValueError, match="power of two"):
        create_operator("Dynamic", 20, Policy(capacity=10))


def through_json(kind: type[T], value: T) -> T:
    return from_json(kind, json.loads(json.dumps(to_json(value))))


@given(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=5))
def property_a_checkpoint_changes_no_decision(steps: list[tuple[int, int]]) -> None:
    """Saved and read after each step, or never: the same mappings."""
    kept = saved = initial_controller(16, Policy(0.5, capacity=200))
    for r, s in steps:
        kept, migration = kept.observe(Sizes(r, s)).decide()
        saved, again = through_json(Controller, saved).observe(Sizes(r, s)).decide()
        assert saved == kept and migration == again
        if migration is not None:
            kept, saved = kept.finish(), saved.finish()


@pytest.mark.parametrize(
    ("counts", "promoted"), [([20], 0), ([20, 20], 0), ([20, 20, 20], 3), ([70], 1), ([20, 50], 2)]
)
def test_keys_wait_for_each_other(counts: list[int], promoted: int) -> None:
    """Of 4 joiners, where 16 tuples of one relation make a key heavy: until together they have three times that."""
    keys = np.repeat(np.arange(len(counts), dtype=np.uint64), counts)
    seen = initial_heavy_keys(4, 1 / 16, together=3).observe(Side.R, keys, np.ones(len(keys), np.int64))
    assert len(seen.decide()[1]) == promoted
    assert len(initial_heavy_keys(4, 1 / 16).observe(Side.R, keys, np.ones(len(keys), np.int64)).decide()[1]) == len(
        counts
    )


def test_heavy_keys_in_a_checkpoint() -> None:
    kept = saved = initial_heavy_keys(8, fraction=0.5)
    for seed in range(6):
        keys, ones = zipf_keys(300, 40, 1.5, seed), np.ones(300, np.int64)
        kept, moves = kept.observe(Side(seed % 2), keys, ones).decide()
        saved, again = through_json(HeavyKeys, saved).observe(Side(seed % 2), keys, ones).decide()
        assert moves == again
        for key, _ in moves:
            kept, saved = kept.finish(key), saved.finish(key)
    assert to_json(kept) == to_json(saved) and kept.keys


def test_groups_in_a_checkpoint() -> None:
    chosen = create_operator("Dynamic", 21)
    assert isinstance(chosen, Dynamic) and through_json(Dynamic, chosen) == chosen
