"""Rows of a fixpoint in groups that do not meet, found by the rest of their columns, the node.

    reach(x, y2) ← reach(x, y) ⋈ edge(y, y2)        group: x      node: y      step: y → y2

    rows = GroupedRows(2, (0,))
    rows.intern([[7, 1]])                               →   group 0, node 0
    rows.propagate([[0, 0, 1]], [], 100, expand).rows   →   [[7, 1]], [1], and what the steps of node 0 add

A row is of the group with its values of some columns, which every rule copies, and a node, those of the others. What
rules derive from a row depends on its node alone: the steps of nodes are found once, by joins, and hold for all groups.
So the groups of a node are one table, which a batch changes at once. In large tables a row takes 16 to 32 bytes with
the places that are free, a record of a pool with its indexes 60.
"""

from collections.abc import Callable
from itertools import accumulate
from typing import Final, NamedTuple

import numpy as np

from squallpy.base.rings import Payload, Ring
from squallpy.runtime.kernels import grouped_batch as at
from squallpy.runtime.kernels import grouped_contents as contents
from squallpy.runtime.kernels import grouped_entries as entries
from squallpy.runtime.kernels.arena_tables import OWNED, UNIT
from squallpy.runtime.kernels.grouped_steps import propagate
from squallpy.runtime.kernels.grouped_tasks import DEEPEST, QUEUED, RECORD, count_tasks, list_tasks
from squallpy.runtime.kernels.line_addresses import KEY, LANES, LINE
from squallpy.runtime.kernels.memory_area import CONSTANTS, Area
from squallpy.runtime.kernels.memory_regions import HEAP, Storage, Words
from squallpy.runtime.kernels.numbered_keys import NumberedKeys
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.kernels.view_container import Container

_COUNT: Final = Payload((Ring.COUNT,))
_REGIONS: Final = ("groups", "heads", "rows", "steps", "levels")
_BIRTH: Final = 512
_SCRATCH: Final = 1 << 13  # words of each array, at first, or of a part of it,
_KEPT: Final = 1 << 21  # and of those that the next batch finds
_PARTS: Final = {at.NEEDS_RECORDS: 2, at.NEEDS_ITEMS: 6}  # of arrays that have several
_RAISED: Final = 16  # times as many steps as come may be looked at for the levels of nodes
_LOW: Final = (1 << 32) - 1
_HEAD: Final = entries.HEAD_BYTES // 8  # words of a node's heads; the second tells the length of its table,
_LENGTH: Final = 1
_STEPS: Final = 2  # the third whether its steps are known
_NONE: Final = np.empty(0, np.int64)

Expand = Callable[[Words], None]
"""Function that finds the steps of nodes, given by their numbers, and adds them."""


class EndlessError(Exception):
    """Derivations that go on after the last iteration that may be."""


Change = tuple[Words, Words]
"""Keys, and how often each came or, below 0, went."""


class GroupedChange(NamedTuple):
    """Rows that came or went with a batch; and groups and nodes, by how many rows of them did: as far as asked for."""

    rows: Change | None
    groups: Change | None
    nodes: Change | None


class GroupedRows(Container):
    """A container of rows, each with an iteration as last column of its key, and how many derivations it has in it.

    Args:
        width: Columns of a row.
        group: The columns that rows of a group agree on.
        slices: Columns of nodes to look these up by.
    """

    def __init__(
        self,
        width: int,
        group: tuple[int, ...],
        slices: tuple[tuple[int, ...], ...] = (),
        storage: Storage = HEAP,
        name: str = "rows",
    ) -> None:
        self.key_width, self.payload = width + 1, _COUNT
        self._group, self._rest = list(group), [c for c in range(width) if c not in group]
        picks = [self._group.index(c) if c in group else ~self._rest.index(c) for c in range(width)]
        self._picks = np.array(picks, np.int64)
        self.groups = NumberedKeys(len(self._group), (), storage, f"{name}.groups")
        self.nodes = NumberedKeys(len(self._rest), slices, storage, f"{name}.nodes")
        self._times = Pool(2, _COUNT, (), storage, f"{name}.times")
        """How often a node derives another, by their numbers."""
        self._new_groups, self._new_nodes = list[Words](), list[Words]()
        arrays = (
            at.NEEDS_DATES, at.NEEDS_RECORDS, at.NEEDS_ITEMS, at.NEEDS_GONE, at.NEEDS_OUT, at.NEEDS_WINDOW,
        )  # fmt: skip
        self._scratch = {need: _empty(_SCRATCH * _PARTS.get(need, 1)) for need in arrays}
        self._arrays: dict[str, Words] = {}
        self._area = Area(storage, name, dict.fromkeys(_REGIONS, _BIRTH), scalars=entries.SCALARS)

    def intern(self, rows: Words) -> tuple[Words, Words]:
        """Return the numbers of the groups and nodes of rows."""
        groups = self.intern_groups(rows)
        (nodes,) = self.intern_nodes(rows[:, self._rest])
        return groups, nodes

    def intern_groups(self, rows: Words) -> Words:
        """Return the numbers of the groups of rows."""
        groups, new = self.groups.intern(np.ascontiguousarray(rows[:, self._group]))
        self._new_groups.append(new)
        return groups

    def intern_nodes(self, *parts: Words) -> list[Words]:
        """Return the numbers of nodes, given in parts by their keys."""
        numbers, new = self.nodes.intern(np.ascontiguousarray(np.concatenate(parts)))  # NB: of columns it has columns
        self._new_nodes.append(new)
        self._make_room_for_heads()
        stops = list(accumulate(map(len, parts)))
        return [numbers[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]

    def unknown(self) -> Words:
        """List the nodes whose steps are not known, between two batches."""
        if len(self.nodes) == self._area.head[entries.KNOWN]:
            return _NONE
        heads = self._heads()
        return np.flatnonzero((heads[:, _STEPS] & OWNED == 0) & (heads[:, _LENGTH] & _LOW != 0))

    def unknown_of(self, numbers: Words) -> Words:
        """List those of some nodes whose steps are not known."""
        numbers = np.ascontiguousarray(numbers)
        return contents.numbers_without(numbers, self._array(entries.HEADS), _HEAD, _STEPS, OWNED)

    def add_steps(self, sources: Words, targets: Words, times: Words, is_once: bool = False) -> Words:
        """Add to how often nodes derive nodes, each pair once; return those of which one does now, or no longer.

        Returned are rows of node, node, and 1 or −1.

        Args:
            is_once: No node ever derives another one in more than one way, so that nothing has to be counted.
        """
        steps = np.column_stack([sources, targets, times])
        if not is_once:
            pairs = np.ascontiguousarray(steps[:, :2])
            before = self._times.get(pairs)[:, 0]
            self._times.upsert(pairs, np.ascontiguousarray(times)[:, None])
            steps[:, 2] = (before + times > 0).astype(np.int64) - (before > 0)
            steps = steps[steps[:, 2] != 0]
        raised = np.empty(_RAISED * (len(steps) + 64), np.int64)
        raised[0] = 0
        self._run(
            lambda done: contents.change_steps(self._area.current(), steps, raised, done), len(steps), entries.STEPS
        )
        contents.raise_sources(self._area.current(), steps)
        return steps

    def learn(self, numbers: Words) -> None:
        """Note that all steps of nodes are known, which were not."""
        self._area.head[entries.KNOWN] += len(numbers)
        self._heads()[numbers, _STEPS] |= OWNED

    def propagate(
        self, sources: Words, steps: Words, most: int, expand: Expand, is_listed: bool = True, is_counted: bool = False
    ) -> GroupedChange:
        """Derive what follows from changes; return the rows that came and went.

        Args:
            sources: Group, node, and how many derivations there are more in iteration 1.
            steps: Node, node, and 1 or −1, as `add_steps` has returned them.
            most: The iteration after which there may be none.
            is_listed: Return rows; and `is_counted`: numbers by group and by node.

        Raises:
            EndlessError: There are.
        """
        area, state = self._area, np.zeros(at.BATCH_STATE, np.int64)
        last = area.head[entries.LAST]
        base = min(last, DEEPEST) + 1
        state[at.MOST_OFFSET] = base + DEEPEST
        heads = np.zeros(last + base + DEEPEST + 64, np.int64)
        bits = np.zeros((len(heads) >> 6) + 1, np.int64)
        groups, nodes = self.groups.top, self.nodes.top
        offsets, words = self._zeros("offsets", (groups + 1) // 2), self._zeros("words", nodes)
        scratch, count = self._scratch, count_tasks(area.current(), steps)
        tasks = np.empty(count + LANES, np.int64)
        if RECORD * (count + len(sources)) > len(scratch[at.NEEDS_DATES]):
            scratch[at.NEEDS_DATES] = _empty(2 * RECORD * (count + len(sources)))
        state[at.DATES] = list_tasks(
            area.current(), sources, steps, offsets, heads, bits, base, tasks, scratch[at.NEEDS_DATES]
        )
        queue, emptied = self._room("queue", QUEUED * nodes), self._room("emptied", nodes)
        by_group = self._zeros("by group", _words_of_counts(groups)) if is_counted else _NONE
        while True:
            answer = propagate(
                area.current(),
                tasks,
                scratch[at.NEEDS_DATES],
                heads,
                bits,
                scratch[at.NEEDS_RECORDS],
                scratch[at.NEEDS_ITEMS],
                words,
                queue,
                emptied,
                scratch[at.NEEDS_GONE],
                scratch[at.NEEDS_WINDOW],
                scratch[at.NEEDS_OUT],
                _NONE if is_listed else by_group,
                state,
                most,
            )
            if answer == at.DONE:
                break
            if answer == at.ENDLESS:
                raise EndlessError
            if answer == at.UNKNOWN_STEPS:
                expand(self.unknown_of(queue[: QUEUED * state[at.NODES_HERE] : QUEUED]))
                new = np.zeros(self.nodes.top - len(emptied), np.int64)
                words, emptied = np.concatenate([words, new]), np.concatenate([emptied, new])
                queue = np.concatenate([queue, *[new] * QUEUED])
            elif answer == at.NEEDS_ROWS:
                area.grow(_region(entries.ROWS), 2 * area.words(_region(entries.ROWS)))
            elif answer == at.NEEDS_TIMES:
                heads, bits = (np.concatenate([array, np.zeros_like(array)]) for array in (heads, bits))
            else:
                scratch[answer] = _widened(scratch[answer], _PARTS.get(answer, 1))
        out = scratch[at.NEEDS_OUT][: state[at.OUT]]
        # NB: before `_list`, which may take rows out
        counted = self._count(out, by_group, words) if is_counted else (None, None)
        derived = GroupedChange(self._list(out, words if state[at.TWICE] else _NONE) if is_listed else None, *counted)
        self._new_groups.append(sources[:, 0])
        self._new_nodes.append(emptied[: state[at.EMPTY]])
        self._forget_empty()
        self._forget_scratch(_KEPT)
        return derived

    def _list(self, out: Words, marks: Words) -> Change:
        """Return rows that came and went, and 1 or −1 for each.

        Args:
            marks: Those of nodes, if a row may have done both.
        """
        if len(marks):
            out = _net(out, contents.part_rows(out, marks, at.IS_TWICE))
        columns, times = contents.columns_of(out, self.groups.keys, self.nodes.keys, self._picks)
        return columns.T, times

    def _count(self, out: Words, by_group: Words, words: Words) -> tuple[Change, Change]:
        """Return groups and nodes, and how many rows of each came, less those that went.

        Args:
            out: Rows that are not counted by group yet.
            words: Those of nodes, as `propagate` leaves them.
        """
        contents.count_rows(out, by_group)
        return contents.counted_keys(by_group, self.groups.keys), contents.counted_nodes(words, self.nodes.keys)

    def _zeros(self, name: str, count: int) -> Words:
        """Return an array of zeros, which is that of the batch before if there is room."""
        array = self._room(name, count)
        array[:] = 0
        return array

    def _room(self, name: str, count: int) -> Words:
        """Return an array of arbitrary words, which is that of the batch before if there is room."""
        if name not in self._arrays or len(self._arrays[name]) < count:
            self._arrays[name] = _empty(count + count // 8)
        return self._arrays[name][:count]

    def _forget_scratch(self, most: int) -> None:
        """Let go of arrays of more words, as a first batch needs them."""
        for need, array in self._scratch.items():
            if len(array) > most:
                self._scratch[need] = _empty(_SCRATCH * _PARTS.get(need, 1))

    def _forget_empty(self) -> None:
        """Drop those groups and nodes that have no rows, among those that are new or may have lost all."""
        groups, nodes = (np.concatenate([_NONE, *some]) for some in (self._new_groups, self._new_nodes))
        self._new_groups.clear()
        self._new_nodes.clear()
        self.groups.drop(contents.numbers_without(groups, self._array(entries.GROUPS), 1, 0, -1))
        empty = contents.numbers_without(nodes, self._array(entries.HEADS), _HEAD, _LENGTH, _LOW)
        if len(empty):
            self._area.head[entries.KNOWN] -= int((self._heads()[empty, _STEPS] & OWNED).sum())
            pairs = contents.forget_steps(self._area.current(), empty)
            if len(self._times):
                self._times.upsert(pairs, -self._times.get(pairs))
            self.nodes.drop(empty)

    def upsert(self, keys: Words, words: Words) -> None:
        """Add derivations to rows in iterations, as they were: nothing follows from them."""
        groups, nodes = self.intern(keys)
        rows = np.column_stack([groups, nodes, keys[:, -1], words[:, 0]])
        self._run(lambda done: contents.add_rows(self._area.current(), rows, done), len(rows), entries.ROWS)
        # NB: groups whose rows of iteration 1 are not here yet are no empty ones, so the next batch looks for those
        self._new_groups.append(groups)
        self._new_nodes.append(nodes)

    def rows(self) -> tuple[Words, Words]:
        """Make keys, rows with their iterations, and how many derivations each has."""
        found = contents.list_rows(self._area.current(), self.nodes.top)
        out = found[:, 0] << 33 | found[:, 1] << 1
        columns, _ = contents.columns_of(out, self.groups.keys, self.nodes.keys, self._picks)
        return np.ascontiguousarray(np.vstack([columns, found[:, 2]]).T), np.ascontiguousarray(found[:, 3:])

    def clear(self) -> None:
        area = self._area
        area.current()
        self._array(entries.GROUPS)[: self.groups.top] = self._array(entries.LEVELS)[: self.nodes.top] = 0
        self._heads()[:] = 0
        for scalar in range(entries.LAST, entries.SCALARS):
            area.head[scalar] = 0
        for part in (self.groups, self.nodes, self._times):
            part.clear()
        self._new_groups.clear()
        self._new_nodes.clear()

    def __len__(self) -> int:
        return self._area.head[entries.ENTRIES]

    @property
    def usage(self) -> dict[str, int]:
        """Rows, and bytes in use by part."""
        arenas = {"rows": entries.ROWS_STATE, "steps": entries.STEPS_STATE}
        used = {part: UNIT * self._area.head[state] for part, state in arenas.items()}
        times = self._times.usage
        used["steps"] += sum(times.values()) - times["records"]
        heads = 8 * (self.groups.top + 5 * self.nodes.top)
        return {"records": len(self), **used, "index": self.groups.nbytes + self.nodes.nbytes + heads}

    def _heads(self) -> Words:
        """Return the heads of nodes: a row of two words for the table and two for steps for each."""
        return self._array(entries.HEADS)[: _HEAD * self.nodes.top].reshape(self.nodes.top, _HEAD)

    def _array(self, place: int) -> Words:
        """Return the region that kernels find at a place of the frame."""
        self._area.current()
        return self._area.array(_region(place))

    def _make_room_for_heads(self) -> None:
        groups, nodes = self.groups.top, self.nodes.top
        assert groups < KEY and nodes < 1 << 30, "a fixpoint has fewer than 2²⁸ groups and 2³⁰ nodes"
        sizes = {entries.GROUPS: groups, entries.HEADS: _HEAD * nodes, entries.LEVELS: nodes}
        for place, words in sizes.items():
            if words > self._area.words(_region(place)):
                self._area.grow(_region(place), max(words, 2 * self._area.words(_region(place))))

    def _run(self, kernel: Callable[[int], int], rows: int, *places: int) -> None:
        """Call a kernel, with the number of rows done, that returns those for which regions had room, until all are."""
        done = 0
        while (done := kernel(done)) < rows:
            for place in places:
                self._area.grow(_region(place), 2 * self._area.words(_region(place)))


def _words_of_counts(count: int) -> int:
    """Return the words of whole lines that hold so many numbers of 32 bits, behind one without meaning."""
    return (1 - (-4 * count // LINE)) * LINE // 8


def _net(out: Words, certain: int) -> Words:
    """Take away rows that both went and came, which are among those that are not certain."""
    rows = np.sort(out[certain:])
    same = np.flatnonzero(rows[1:] >> 1 == rows[:-1] >> 1)
    kept = np.delete(rows, np.concatenate([same, same + 1]))
    out[certain : certain + len(kept)] = kept
    return out[: certain + len(kept)]


def _widened(array: Words, parts: int) -> Words:
    """Make an array of some parts twice as long, each part at twice its place."""
    wide = _empty(2 * len(array))
    wide.reshape(parts, -1)[:, : len(array) // parts] = array.reshape(parts, -1)
    return wide


def _empty(count: int) -> Words:
    """Make an array of arbitrary words that begins with a cache line; behind it is another one, to be read at most."""
    array = np.empty(count + 2 * LINE // 8, np.int64)
    first = -array.ctypes.data % LINE // 8
    return array[first : first + count]


def _region(place: int) -> int:
    """Return the number of a region, by where its address is in the frame."""
    return (place - CONSTANTS) // 2
