"""Grouped rows: fixpoints of groups by differences by iteration, beside loops over sets."""

from collections import Counter
from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels.grouped_rows import EndlessError, GroupedRows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool

Pair = tuple[int, int]
MOST = 1 << 20


def entries_of(sources: set[Pair], steps: set[Pair]) -> Counter[tuple[int, int, int]]:
    """Count the derivations of each row by iteration, from scratch: (group, node, iteration) → how many."""
    ranks, found, last, iteration = dict.fromkeys(sources, 1), Counter((x, y, 1) for x, y in sources), sources, 1
    targets: dict[int, list[int]] = {}
    for y, z in steps:
        targets.setdefault(y, []).append(z)
    while last:
        iteration += 1
        derived = [(x, z) for x, y in last for z in targets.get(y, ())]
        found.update((x, z, iteration) for x, z in derived)
        last = {row for row in derived if row not in ranks}
        ranks |= dict.fromkeys(last, iteration)
    return found


def table(rows: object) -> npt.NDArray[np.int64]:
    return np.array(sorted(rows), np.int64).reshape(-1, 3)  # type: ignore[call-overload]


class Graphs:
    """Grouped rows, with the sources and steps that they are to follow.

    Args:
        is_listed: Rows that come and go are asked for, not only how many did of each group and node.
    """

    def __init__(self, is_listed: bool = True) -> None:
        self.rows, self.sources, self.steps, self.there = GroupedRows(2, (0,)), set[Pair](), set[Pair](), set[Pair]()
        self.is_listed = is_listed

    def learn(self, numbers: Words) -> None:
        """Find the steps of nodes, and of those behind them, as a maintainer does by joins."""
        rows, targets = self.rows, dict[int, set[int]]()
        for y, z in self.steps:
            targets.setdefault(y, set()).add(z)
        left = set(rows.nodes.keys[numbers][:, 0].tolist())
        behind = set(left)
        while left:
            left = set().union(*(targets.get(y, set()) for y in left)) - behind
            behind |= left
        (numbers,) = rows.intern_nodes(np.array(sorted(behind), np.int64).reshape(-1, 1))
        nodes = rows.unknown_of(numbers)
        rows.learn(nodes)
        keys = set(rows.nodes.keys[nodes][:, 0].tolist())
        pairs = table((y, z, 1) for y in keys for z in targets.get(y, ()))
        if len(pairs):
            rows.add_steps(
                rows.nodes.numbers(pairs[:, :1].copy()), rows.nodes.numbers(pairs[:, 1:2].copy()), pairs[:, 2]
            )

    def change(self, sources: set[Pair], steps: set[Pair], most: int = MOST) -> None:
        """Let there be these sources and steps, and note which rows come and go."""
        rows = self.rows
        changes = [
            table([(*pair, 1) for pair in now - before] + [(*pair, -1) for pair in before - now])
            for before, now in ((self.sources, sources), (self.steps, steps))
        ]
        self.learn(rows.unknown())
        self.sources, self.steps = sources, steps
        its, changed = changes
        numbers = rows.nodes.numbers(changed[:, :1].copy())
        changed, numbers = changed[numbers >= 0], numbers[numbers >= 0]
        (targets,) = rows.intern_nodes(changed[:, 1:2])
        done = rows.add_steps(numbers, targets, changed[:, 2].copy())
        given = np.column_stack([*rows.intern(its[:, :2]), its[:, 2]])
        derived = rows.propagate(given, done, most, self.learn, self.is_listed, is_counted=True)
        assert derived.groups and derived.nodes and (derived.rows is not None) == self.is_listed
        if derived.rows:
            changes_of_rows = list(zip(*(some.tolist() for some in derived.rows), strict=True))
        else:
            now = {(x, y) for x, y, _ in entries_of(sources, steps)}
            changes_of_rows = [(row, 1) for row in now - self.there] + [(row, -1) for row in self.there - now]
        counts = Counter[int](), Counter[int]()
        for row, sign in changes_of_rows:
            assert (tuple(row) in self.there) == (sign < 0), f"{row} {sign}"
            (self.there.add if sign > 0 else self.there.remove)(tuple(row))
            for count, value in zip(counts, row, strict=True):
                count[value] += sign
        for count, (keys, times) in zip(counts, (derived.groups, derived.nodes), strict=True):
            assert {k: n for k, n in count.items() if n} == dict(zip(keys[:, 0].tolist(), times.tolist(), strict=True))

    def check(self) -> None:
        """Compare rows, and all that is stored of them, with what follows from sources and steps."""
        expected = entries_of(self.sources, self.steps)
        keys, words = self.rows.rows()
        found = dict(zip(map(tuple, keys.tolist()), words[:, 0].tolist(), strict=True))
        assert found == expected and len(self.rows) == len(expected) == self.rows.usage["records"]
        assert self.there == {(x, y) for x, y, _ in expected}
        assert len(self.rows.nodes) == len({y for _, y in self.there})
        assert len(self.rows.groups) == len({x for x, _ in self.there})


@pytest.mark.parametrize("is_listed", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_differential_random_graphs(seed: int, is_listed: bool) -> None:
    """Sources and steps come and go, also in cycles; some of the time all is restored from what is listed."""
    random = Random(seed)
    graphs, size = Graphs(is_listed), random.choice((3, 6, 12, 40, 150))
    for _ in range(20):
        parts = list[set[Pair]]()
        for before in (graphs.sources, graphs.steps):
            now = set(before)
            for _ in range(random.choice((1, 4, size))):
                pair = random.randrange(size), random.randrange(size)
                if len(now) > size * 1.4 or random.random() < 0.3:
                    now.discard(random.choice(sorted(now)) if now else pair)
                else:
                    now.add(pair)
            parts.append(now)
        graphs.change(parts[0], parts[1])
        graphs.check()
        if random.random() < 0.2:
            keys, words = graphs.rows.rows()
            order = np.array(random.sample(range(len(keys)), len(keys)), np.int64)
            if random.random() < 0.5:
                graphs.rows.clear()
                assert not len(graphs.rows)
            else:
                graphs.rows = GroupedRows(2, (0,))
            graphs.rows.upsert(keys[order], words[order])
            graphs.check()


def test_a_node_that_more_nodes_derive_than_fit_a_word() -> None:
    """The table of such a group has pairs; others stay as they are."""
    graphs, many = Graphs(), 40_000
    sources = {(1, y) for y in range(many)} | {(2, 5)}
    steps = {(y, many) for y in range(many)} | {(many, many + 1)}
    graphs.change(sources, steps)
    graphs.check()
    graphs.change(sources, {(y, many) for y in range(many - 1, many)} | {(many, many + 1)})
    graphs.check()
    graphs.change({(1, 3), (2, 5)}, {(3, many), (many, many + 1), (many + 1, 3)})
    graphs.check()
    keys, words = graphs.rows.rows()
    graphs.rows = GroupedRows(2, (0,))
    graphs.rows.upsert(keys, words)
    graphs.check()
    graphs.change(set(), set())
    graphs.check()


def test_more_iterations_than_fit_a_word() -> None:
    graphs, length = Graphs(), 70_000
    steps = {(y, y + 1) for y in range(length)}
    sources = {(-7, y) for y in range(0, length, 30_000)} | {(9, length - 2)}
    graphs.change(sources, steps)
    graphs.check()
    graphs.change({(-7, 0), (9, length - 2)}, steps)
    graphs.check()
    graphs.change({(-7, 0)}, steps - {(length - 3, length - 2)} | {(10, length - 1)})
    graphs.check()


def test_the_last_iteration_that_may_be() -> None:
    graphs = Graphs()
    chain = {(y, y + 1) for y in range(10)}
    graphs.change({(1, 0)}, chain, most=11)
    with pytest.raises(EndlessError):
        graphs.change({(1, 0)}, chain | {(10, 11)}, most=11)


def test_fewer_bytes_than_a_pool() -> None:
    """Also where all nodes have as many groups, so that blocks that they have grown out of are free at once."""
    graphs = Graphs()
    graphs.change({(x, x) for x in range(80)}, {(y, y + 1) for y in range(1000)})
    pool = Pool(2, Payload((Ring.COUNT, Ring.COUNT)), ((1,),))
    keys, words = graphs.rows.rows()
    pool.upsert(keys[:, :2].copy(), np.column_stack([keys[:, 2], words]))
    bytes_of = [sum(usage.values()) - usage["records"] for usage in (graphs.rows.usage, pool.usage)]
    assert len(graphs.rows) == len(pool) and 3 * bytes_of[0] < 2 * bytes_of[1]


def test_a_node_that_derives_many() -> None:
    """Its steps are more than there is room for at first, and come when others already are in the same iteration."""
    graphs, many = Graphs(), 20_000
    sources = {(x, x) for x in range(6)}
    steps = {(y, many) for y in range(5)} | {(many, y + 9) for y in range(many - 9)} | {(9, 8), (8, many)}
    graphs.change(sources, steps)
    graphs.check()
    graphs.change(sources, steps - {(1, many), (9, 8), (many, 11)} | {(5, many), (many, 7), (3, 12)})
    graphs.check()
    graphs.change({(2, 2), (3, 9)}, steps)
    graphs.check()


def test_a_row_that_goes_and_comes_in_a_later_iteration() -> None:
    """It has one derivation before and one after, of other ranks: neither went nor came."""
    graphs, sources = Graphs(), {(x, 0) for x in range(40)}
    steps = {(0, 9), (0, 1), (1, 2), (9, 10)}
    graphs.change(sources, steps)
    graphs.check()
    before = set(graphs.there)
    graphs.change(sources, steps - {(0, 9)} | {(2, 9)})
    graphs.check()
    assert graphs.there == before
    graphs.change(sources | {(50, 2)}, steps - {(0, 1)})
    graphs.check()


def test_a_new_step_from_a_node_that_goes() -> None:
    """What comes by the step is taken back in the same iteration, or comes by another way in it."""
    graphs, groups = Graphs(), range(60)
    graphs.change({(x, 0) for x in groups}, {(0, 1), (1, 2), (0, 5), (5, 6)})
    graphs.check()
    graphs.change({(x, 0) for x in groups}, {(1, 2), (1, 9), (9, 10), (0, 5), (5, 6)})
    graphs.check()
    graphs.change({(x, 0) for x in groups if x % 3}, {(1, 2), (1, 9), (9, 10), (0, 5), (5, 9), (5, 7), (7, 10)})
    graphs.check()
    graphs.change({(x, 0) for x in groups if x % 2}, {(1, 2), (0, 1), (1, 9), (9, 10), (5, 7), (7, 10), (5, 8)})
    graphs.check()


@pytest.mark.parametrize("seed", range(6))
def test_differential_layers(seed: int) -> None:
    """Edges between layers come and go, some of them across a layer; where there are none, a node has one time."""
    random = Random(seed)
    graphs, layers, width = Graphs(), random.choice((3, 5, 8)), random.choice((10, 40))
    edges = set[Pair]()
    for _ in range(12):
        for _ in range(random.choice((2, layers * width))):
            if edges and random.random() < 0.45:
                edges.remove(random.choice(sorted(edges)))
            else:
                layer = random.randrange(layers) * width
                skipped = width if random.random() < 0.05 else 0
                edges.add((layer + random.randrange(width), layer + width + skipped + random.randrange(width)))
        graphs.change(set(edges), set(edges))
        graphs.check()


@pytest.mark.parametrize("seed", range(4))
def test_differential_many_changes_of_few_nodes(seed: int) -> None:
    """Groups come and go so often that what is noted of them is written anew several times."""
    random = Random(seed)
    graphs, groups = Graphs(), random.choice((3, 30, 300))
    steps = {(y, y + 1) for y in range(4)} | {(2, 0)}
    for number in range(60):
        sources = {(x, random.randrange(5)) for x in range(groups) if random.random() < random.choice((0.1, 0.9))}
        graphs.change(sources, steps if number % 3 else steps - {random.choice(sorted(steps))})
        graphs.check()
