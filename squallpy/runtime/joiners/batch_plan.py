"""The course of a batch: the grid that its tuples are joined on, and what of the next one is made ready beside it.

    epoch 0 on (4, 4)  →  (2, 8) is best: copies 0 … 2²⁸ of 2³², then 2²⁸ … 2²⁹, …  →  epoch 1 on (2, 8)

A migration takes several batches, and none of them waits for it: their tuples are joined as they come, on the grid that
there is. Beside it each joiner fills a second pool for each view, with what it will have on the other grid: with every
batch a share of all, from the joiner that has it, and of the shares before what the batch has changed. What goes
to others are letters, with which the next batch begins (`state/post.py`): no batch has one more stage. The joiners of a
core copy in turns, more at a time, for to begin costs one more than to copy a little. When all are copied, the next
batch is on the new grid, and its joiners read the second pools. So each pair meets once, on one grid, whatever
statements do with what they find. The paper's joiners, which no batches keep in step, need sets of old and new tuples
for that (`adaptive-online-joins` Alg. 3, `physical/joins/protocol.py`).
"""

import json
from collections.abc import Mapping as Map
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil
from typing import Any, Protocol

import numpy as np

from squallpy.base.json_codec import from_json, to_json
from squallpy.physical.distribute.heavy_keys import SHARE
from squallpy.physical.joins.controller import NOTHING, Controller, Policy, Sizes
from squallpy.physical.joins.grid import Grid
from squallpy.physical.joins.groups import square_grids, stored_load
from squallpy.physical.joins.heavy_keys import HeavyKeys, initial_heavy_keys
from squallpy.physical.joins.mapping import Side, best_mapping
from squallpy.physical.joins.migration import Migration, migration
from squallpy.physical.plan import Plan
from squallpy.runtime.kernels.container import HASHES
from squallpy.runtime.state.pool_names import PoolName, Role

LEAST = 1 << 13  # tuples that are copied at a time, at all joiners
FEW = 1 << 11  # tuples of a joiner: fewer are not worth to begin for
TURNS = 8  # that joiners take at most, after which each has copied once
UNEVEN = 4  # and where that leaves tasks with more to do than others
TOGETHER = 4  # keys just heavy that move at once, for then joiners look at all they have: a quarter of one's work
BATCHES = 256  # that a migration takes at most
FORESIGHT = 5  # batches like the one that comes, after which the mapping is to be best: a migration takes as long
WORTH = 1.06  # of its load: a mapping that is hardly better then is likely to be worse soon after
OTHERS = ""  # what statistics call the keys that they do not name

Seen = Map[str, Map[str, int]]
"""By joiner: the tuples of each relation that arrived in a batch (`r`, `s`), their bytes (`r bytes`, `s bytes`), and
the tuples that it has now (`R`, `S`)."""


@dataclass(frozen=True, slots=True)
class Turn:
    """Whose it is to copy: of so many turns the one with that number, from 0 on."""

    number: int = 0
    of: int = 1

    def __contains__(self, slot: int) -> bool:
        return slot % self.of == self.number


EVERYONE = Turn()


@dataclass(frozen=True)
class Course:
    """How one batch goes: on a grid, or by keys of which the heavy ones have a grid each."""

    grids: tuple[Grid, ...] = ()  # one, or one for each group of joiners
    epoch: int = 0
    fresh: bool = False  # the first batch of its epoch
    to: tuple[Grid, ...] = ()  # those that are made ready in their place
    low: int = 0  # which share, of 2³², was copied by batches before
    high: int = 0  # and which is when this batch is done
    turn: Turn = EVERYONE  # whose it is to copy; in the last batch it is everyone's
    done: tuple[int, ...] = ()  # by slot, which share was copied by batches before; none: below `low`
    cores: int = 1  # to which joiners are dealt out, so that each has as many whose turn it is
    heavy: tuple[tuple[int, Grid], ...] = ()  # the keys that have a grid
    moves: tuple[tuple[int, Grid, Grid], ...] = ()  # those whose tuples move when it is done: from where, to where
    came: tuple[Migration, ...] = ()  # what the batch before has moved, which arrives with this one
    sent: Turn = EVERYONE  # whose turn it was then

    @property
    def moving(self) -> bool:
        """Do joiners send each other anything?"""
        return bool(self.to or self.moves)

    @cached_property
    def migrations(self) -> tuple[Migration, ...]:
        """From each of its grids to what takes its place; of keys each once."""
        of_keys = dict.fromkeys(migration(old, new) for _, old, new in self.moves)
        return (*map(migration, self.grids, self.to), *of_keys)

    @property
    def whose(self) -> Turn:
        """Whose turn it is."""
        return EVERYONE if self.high == HASHES else self.turn

    @property
    def after(self) -> tuple[int, ...]:
        """By slot, which share is copied when this batch is done."""
        return tuple(self._share(slot)[1 if slot in self.whose else 0] for slot in range(TURNS))

    def slot(self, joiner: int) -> int:
        """In which turn it is, of TURNS."""
        return joiner // self.cores % TURNS

    def copies(self, joiner: int) -> tuple[int, int] | None:
        """From which share on, and up to which, a joiner copies after this batch; None if it does not."""
        slot = self.slot(joiner)
        return self._share(slot) if self.to and slot in self.whose else None

    def _share(self, slot: int) -> tuple[int, int]:
        """Of those whose turn it is: as far as all will be when it is theirs again."""
        low = self.done[slot] if self.done else self.low
        ahead = (self.whose.of - 1) * (self.high - self.low)
        return low, max(low, min(HASHES, self.high + ahead))

    def sends(self, joiner: int) -> bool:
        """Does it leave letters after this batch?"""
        return bool(self.moves) or self.copies(joiner) is not None

    def senders(self, joiner: int) -> list[int]:
        """Who has left letters for a joiner, it may be."""
        found = {int(j) for arrives in self._arriving for side in Side for j in arrives.senders(joiner, side)}
        return sorted(j for j in found if self.slot(j) in self.sent)

    @cached_property
    def _arriving(self) -> tuple[Migration, ...]:
        return tuple(migration(came.old, came.new) for came in self.came)

    def group(self, joiner: int) -> int | None:
        """The number of the grid that a joiner is in."""
        return next((i for i, grid in enumerate(self.grids) if joiner in grid), None)

    def pool(self, view: str) -> str:
        """What a view on the grid is kept in."""
        return PoolName(view, Role.OTHER_GRID) if self.epoch % 2 else view

    def other(self, view: str) -> str:
        """What it will be kept in."""
        return view if self.epoch % 2 else PoolName(view, Role.OTHER_GRID)


class Pilot(Protocol):
    """Decides on the course of each batch from what was seen of those before, and from nothing else. A dataclass."""

    @property
    def course(self) -> Course: ...

    def figures(self, stats: Map[str, Any]) -> dict[str, Any]:
        """What `--metrics` says of the batch that it was for."""
        ...

    def before(self, rows: Sizes) -> "Pilot":
        """With the course of a batch that reads so many rows of each relation."""
        ...

    def after(self, stats: Map[str, Any]) -> "Pilot":
        """With what was seen of it."""
        ...


@dataclass(frozen=True, slots=True)
class GridPilot:
    """Steers a grid, or groups of joiners with one each. Controllers weigh tuples by their bytes, as they came on
    average so far (§4.2.2); of rows that are about to be read as many will stay as did so far."""

    course: Course
    controllers: tuple[Controller, ...]
    held: Sizes = NOTHING  # tuples that there are
    came: Sizes = NOTHING  # tuples that ever arrived, at all joiners together
    brought: Sizes = NOTHING  # their bytes
    read: Sizes = NOTHING  # rows that ever were
    changed: Sizes = NOTHING  # by how much they made relations larger and smaller, both added up
    cores: int = 1  # at which tasks run

    def figures(self, stats: Map[str, Any]) -> dict[str, Any]:
        """Of the batch that it was for: the mapping (of several groups: of each), the input-load factor (tuples that a
        joiner of the largest has, by the relations' sizes), that by the best mapping's (in bytes), and what the joiner
        with most has by the mean."""
        seen: Seen = stats["joiners"]
        now, mappings = self._observed(seen), [grid.mapping for grid in self.course.grids]
        sizes, shapes = now.controllers[0].sizes, [[m.rows, m.columns] for m in mappings]
        best = stored_load([best_mapping(m.joiners, sizes.r, sizes.s) for m in mappings], sizes.r, sizes.s)
        return {
            "mapping": shapes[0] if len(shapes) == 1 else shapes, "epoch": self.course.epoch,
            "ilf": stored_load(mappings, now.held.r, now.held.s),
            "ilf_ratio": stored_load(mappings, sizes.r, sizes.s) / best if best else 1.0,
            "busiest": busiest(seen, sum(mapping.joiners for mapping in mappings)),
            "migrated": self.course.high / HASHES if self.course.to else None,
        }  # fmt: skip

    def before(self, rows: Sizes) -> "GridPilot":
        """On the way to another grid, where one will be better: a batch is counted before it is sent, and is taken for
        the first of several."""
        controllers, coming = self.controllers, self._brought(self.controllers[0].sizes, rows)
        course = replace(self.course, fresh=False, came=self.course.migrations, sent=self.course.whose)
        if course.to and self._is_moot(coming.times(FORESIGHT)):
            course, controllers = self._given_up()
        elif course.to and course.high == HASHES:
            course, controllers = self._settled(coming)
        if not course.to:
            controllers = tuple(controller.decide(coming.times(FORESIGHT))[0] for controller in controllers)
            to = tuple(c.grid for c in controllers) if any(c.migrating for c in controllers) else ()
            # NB: who is when in turn stays as it is as long as a migration runs, also if it goes on with other cores
            course = replace(course, to=to, low=0, high=0, turn=EVERYONE, done=(), cores=self.cores)
        if course.to:
            course = self._onwards(course, self._next(course, controllers, self._brought(self.changed, rows)))
        return replace(self, course=course, controllers=controllers, read=self.read + rows)

    def _onwards(self, course: Course, high: int) -> Course:
        """A batch that copies up to there: all joiners, or those who are next where that spares time, for each has few
        tuples to copy, or each core has some who are next, and there are batches enough for all turns."""
        share, joiners = high - course.high, sum(grid.joiners for grid in course.grids)
        few = share * stored_load([g.mapping for g in course.grids], self.held.r, self.held.s) < FEW * HASHES
        most = max(UNEVEN if few else 1, min(TURNS, joiners // course.cores))
        turns = course.turn.of
        if not 1 < turns <= most:
            turns = 1 << min(most, (HASHES - course.high) // share).bit_length() - 1
        turn = Turn((course.turn.number + 1) % turns, turns)
        return replace(course, low=course.high, high=high, turn=turn, done=course.after)

    def _brought(self, so_far: Sizes, rows: Sizes) -> Sizes:
        """What so many rows will bring, if it is as much as all `so_far` have; of a relation of which there were none,
        as of the other."""
        read = self.read
        of_r, of_s = (size / count if count else None for size, count in ((so_far.r, read.r), (so_far.s, read.s)))
        return Sizes(int(rows.r * (of_r or of_s or 0)), int(rows.s * (of_s or of_r or 0)))

    def _settled(self, coming: Sizes) -> tuple[Course, tuple[Controller, ...]]:
        """All is copied: on the other grid, unless the old one is better by now."""
        course, sizes = self.course, self.controllers[0].sizes + coming
        old, new = (stored_load([g.mapping for g in grids], sizes.r, sizes.s) for grids in (course.grids, course.to))
        if new > old:
            return self._given_up()
        finished = tuple(c.finish() if c.migrating else c for c in self.controllers)
        return Course(course.to, course.epoch + 1, fresh=True, came=course.migrations), finished

    def _is_moot(self, coming: Sizes) -> bool:
        """Has it become worse than to go the other way?"""
        both = zip(self.controllers, self.course.grids, strict=True)
        return any(c.observe(coming).is_superseded(grid.mapping) for c, grid in both if c.migrating)

    def _given_up(self) -> tuple[Course, tuple[Controller, ...]]:
        """On the old grid, what was copied being dropped."""
        both = zip(self.controllers, self.course.grids, strict=True)
        controllers = tuple(c.abandon(grid) if c.migrating else c for c, grid in both)
        return Course(self.course.grids, self.course.epoch, fresh=True), controllers

    def _next(self, course: Course, controllers: tuple[Controller, ...], change: Sizes) -> int:
        """Up to which hash a batch copies that changes so much."""
        left, mappings = 1 - course.high / HASHES, [grid.mapping for grid in course.grids]
        paces = [c.copy_fraction(m, left, change) for c, m in zip(controllers, mappings, strict=True) if c.migrating]
        tuples = sum(m.joiners for m in mappings) * stored_load(mappings, self.held.r, self.held.s)
        share = max(*paces, LEAST / max(1, tuples), 1 / BATCHES)
        return min(HASHES, course.high + ceil(share * HASHES))

    def after(self, stats: Map[str, Any]) -> "GridPilot":
        return self._observed(stats["joiners"])

    def _observed(self, seen: Seen) -> "GridPilot":
        """With what has come and gone: of a tuple that changes only how often it is there, half of each. It comes to
        all groups, and stays in one."""
        now, groups = self.held, [_Group(grid, [seen[str(n)] for n in grid.numbers]) for grid in self.course.grids]
        arrived, held = groups[0].of("r", "s"), sum((group.of("R", "S") for group in groups), NOTHING)
        gone = Sizes(max(0, arrived.r - held.r + now.r) // 2, max(0, arrived.s - held.s + now.s) // 2)
        fresh = Sizes(held.r - now.r + gone.r, held.s - now.s + gone.s)
        came = self.came + Sizes(_sum(seen, "r"), _sum(seen, "s"))
        brought = self.brought + Sizes(_sum(seen, "r bytes"), _sum(seen, "s bytes"))
        changes = (_weighed(fresh, came, brought), _weighed(gone, came, brought))
        sizes = _weighed(held, came, brought)
        controllers = tuple(replace(c.observe(*changes), sizes=sizes) for c in self.controllers)
        changed = self.changed + changes[0] + changes[1]
        return replace(self, controllers=controllers, held=held, came=came, brought=brought, changed=changed)


@dataclass(frozen=True, slots=True)
class _Group:
    """The joiners of a grid, and what was seen at each."""

    grid: Grid
    seen: list[Map[str, int]]

    def of(self, r: str, s: str) -> Sizes:
        """How many tuples that were, each once."""
        copies, sums = self.grid.mapping.copies, [sum(joiner[name] for joiner in self.seen) for name in (r, s)]
        return Sizes(sums[0] // copies(Side.R), sums[1] // copies(Side.S))


def _sum(seen: Seen, name: str) -> int:
    return sum(joiner[name] for joiner in seen.values())


def _weighed(tuples: Sizes, came: Sizes, brought: Sizes) -> Sizes:
    """So many tuples in bytes."""
    return Sizes(tuples.r * brought.r // max(1, came.r), tuples.s * brought.s // max(1, came.s))


@dataclass(frozen=True, slots=True)
class KeyPilot:
    """Gives heavy keys their grids (thesis §4.4.4): what of a key is where it no longer belongs moves between two
    batches, all at once, for a key is heavy before it has much."""

    course: Course
    keys: HeavyKeys

    def figures(self, stats: Map[str, Any]) -> dict[str, Any]:
        """How many keys have a grid, and what the joiner with most has by the mean."""
        return {"heavy_keys": len(self.course.heavy), "busiest": busiest(stats["joiners"], self.keys.joiners)}

    def before(self, rows: Sizes) -> "KeyPilot":
        return self

    def after(self, stats: Map[str, Any]) -> "KeyPilot":
        keys, places = self.keys, dict(self.course.heavy)
        for key, _, to in self.course.moves:
            keys = keys.finish(key)
            places[key] = to
        for side in Side:
            keys = _observed(keys, side, stats.get("keys", {}))
        keys, moves = keys.decide()
        placed = tuple((key, places[key]) for key in sorted(places) if places[key].joiners > 1)
        moving = tuple((key, migration.old, migration.new) for key, migration in moves)
        return KeyPilot(Course(heavy=placed, moves=moving, came=self.course.migrations), keys)


def _observed(keys: HeavyKeys, side: Side, told: Map[str, Map[str, int]]) -> HeavyKeys:
    """What readers tell of a relation: the keys of most tuples, and how many have others."""
    came, went = (dict(told.get(name_of(side, sign), {})) for sign in (1, -1))
    others = (came.pop(OTHERS, 0), went.pop(OTHERS, 0))
    counts = np.array([*came.values(), *(-count for count in went.values())], np.int64)
    return keys.observe(side, np.array([int(key) for key in (*came, *went)], np.uint64), counts, others)


def name_of(side: Side, sign: int) -> str:
    """What statistics call the keys of tuples that came, or went."""
    return f"{side.name} {sign:+}"


def busiest(seen: Seen, joiners: int) -> float:
    """What the joiner with most has by the mean of so many."""
    held = [joiner["R"] + joiner["S"] for joiner in seen.values()]
    return max(held) * joiners / sum(held) if any(held) else 1.0


def pilot_of(
    plan: Plan,
    facts: Map[str, Any] | None = None,
    first: Map[str, int] | None = None,
    often: Map[str, Map[str, int]] | None = None,
) -> Pilot | None:
    """The pilot of a plan's grid, where the last one stopped, or before the first batch; None if the grid stays.

    With `first`, how many tuples of each relation that batch brings, it begins with the mapping that is best then: a
    bound on the load holds from the first tuple on only if tuples are counted before they are sent (docs/joins.md).
    With `often`, what readers tell of keys in a sample of it, those that are heavy there begin with a grid.
    """
    if not plan.on_grid:
        return None
    if plan.grid is None:
        return _key_pilot(plan, facts, often or {})
    policy = Policy(plan.epsilon, capacity=plan.capacity, most=1 << plan.partitions.bit_length() - 1, worth=WORTH)
    if facts:
        pilot = from_json(GridPilot, facts)
        return replace(pilot, controllers=tuple(replace(c, policy=policy) for c in pilot.controllers))
    sizes, groups = rows_of(plan, first or {}), square_grids(plan.partitions) if plan.groups else (plan.grid,)
    grids = tuple(g.with_mapping(best_mapping(g.joiners, sizes.r, sizes.s, g.mapping)) for g in groups)
    return GridPilot(Course(grids), tuple(Controller(grid, policy) for grid in grids))


def _key_pilot(plan: Plan, facts: Map[str, Any] | None, often: Map[str, Map[str, int]]) -> KeyPilot:
    policy = Policy(min(1.0, 4 * plan.epsilon))  # for nothing comes while a key moves
    if not facts:
        keys = initial_heavy_keys(plan.partitions, SHARE, policy, TOGETHER)
        sample = _observed(_observed(keys, Side.R, often), Side.S, often).decide()[0]
        keys = keys.with_sampled_grids(sample)
        return KeyPilot(Course(heavy=tuple((heavy.key, heavy.place) for heavy in keys.keys)), keys)
    pilot = from_json(KeyPilot, facts)
    return replace(pilot, keys=replace(pilot.keys, policy=policy))


def rows_of(plan: Plan, rows: Map[str, int]) -> Sizes:
    """As many rows as the largest of its relations has bring a side of the grid tuples."""
    windows = {name: window.stream for name, window in plan.windows.items()}
    streams = {
        view.name: [windows.get(a.relation.name, a.relation.name) for a in view.atoms] for view in plan.program.views
    }
    brought = dict.fromkeys(Side, 0)
    for view in plan.on_grid:
        most = max((rows.get(name, 0) for name in streams[view.view]), default=0)
        brought[view.side] = max(brought[view.side], most)
    return Sizes(brought[Side.R], brought[Side.S])


def told(pilot: Pilot | None) -> str:
    """What tasks are told of the next batch: its course, if anybody steers."""
    return json.dumps(to_json(pilot.course)) if pilot else ""


@lru_cache(maxsize=2)  # the partitions of a worker are told the same, at each stage
def course_of(text: str) -> Course | None:
    """A course as it was told a task; None if there is none."""
    return from_json(Course, json.loads(text)) if text else None
