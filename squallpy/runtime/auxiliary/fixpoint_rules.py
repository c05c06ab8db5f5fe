"""Rules of a fixpoint, evaluated for the change of one atom: joins over columns of codes, never a loop over rows.

reach(x, y) ← reach(x, z) ⋈ edge(z, y)      Δreach: slice edge by z        Δedge: slice reach by z
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from squallpy.base.keys import NULL
from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind, Type
from squallpy.logical.coercion import same_values
from squallpy.logical.expressions import Call, Column, Expr, columns
from squallpy.program.auxiliary.fixpoint import Atom, Rule
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, full
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.fixpoint_steps import combine_rows
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import decode, encode

RelationId = tuple[bool, int]  # True for recursive tables, and the number of the table or leaf


class AtomRows(NamedTuple):
    """Rows of an atom: their columns, the iterations in which they came, and how often they are there.

    `ranks` are 0 for leaves.
    """

    keys: Words
    ranks: Words
    times: Words


@dataclass(frozen=True, slots=True)
class Stored:
    """The rows of a leaf or a recursive table in a pool, whose keys begin with its columns.

    Args:
        rank_in_keys: The rank is the key after the columns; else, if there is one, it is the first word.
        is_counted: The last word tells how often a row is there; else each is there once.
    """

    pool: Pool
    width: int
    is_recursive: bool
    rank_in_keys: bool
    is_counted: bool

    @property
    def facts(self) -> Words:
        """Places of a record's rank and of how often it is there, as `combine_rows` takes them."""
        nowhere = self.pool.payload.width
        rank = nowhere if not self.is_recursive else ~self.width if self.rank_in_keys else 0
        return np.array([rank, nowhere - 1 if self.is_counted else nowhere])


@dataclass(frozen=True, slots=True)
class Probe:
    """A join with an atom: the values of `given` are looked up in its `columns`, all of them if `is_whole`.

    Args:
        occurrence: The place of the atom in the rule.
        strict: For each value, True if NULL has no match.
        conjuncts: What is tested of the pairs.
    """

    occurrence: int
    columns: tuple[int, ...]
    given: tuple[Expr, ...]
    strict: tuple[bool, ...]
    conjuncts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class DeltaPlan:
    """The joins that find the derivations of a rule for changed rows at one `start` of its atoms."""

    rule: Rule
    start: int
    conjuncts: tuple[Expr, ...]
    probes: tuple[Probe, ...]

    def probes_of(self, relation: RelationId) -> tuple[Probe, ...]:
        """List the probes of a recursive table or a leaf."""
        return tuple(probe for probe in self.probes if relation_of(self.rule.atoms[probe.occurrence]) == relation)


def delta_plans(rules: Iterable[Rule]) -> list[DeltaPlan]:
    """Plan the joins of each rule for a change at each of its atoms."""
    return [_delta_plan(rule, start) for rule in rules for start in range(len(rule.atoms))]


def relation_of(atom: Atom) -> RelationId:
    return atom.is_recursive, atom.place


def slices_of(plans: Iterable[DeltaPlan], relation: RelationId, key: int | None) -> tuple[tuple[int, ...], ...]:
    """List the columns by which the rows of a leaf or table are looked up.

    Args:
        key: The number of its columns if these are its whole key, by which a pool needs no slice.
    """
    probes = (probe.columns for plan in plans for probe in plan.probes_of(relation))
    return tuple(dict.fromkeys(columns for columns in probes if columns and len(columns) != key))


def _delta_plan(rule: Rule, start: int) -> DeltaPlan:
    """Order the atoms, each after those that it is joined with by equality."""
    left = [n for n in range(len(rule.atoms)) if n != start]
    conjuncts, bound = list(rule.conjuncts), {c.id for c in rule.atoms[start].columns}
    first, conjuncts = _decided(conjuncts, bound)
    probes = list[Probe]()
    while left:
        pairs = {n: _equalities(conjuncts, rule.atoms[n], bound) for n in left}
        best = max(left, key=lambda n: (len(pairs[n]), n == 0))
        left.remove(best)
        used = pairs[best]
        conjuncts = [c for c in conjuncts if c not in [conjunct for conjunct, _, _ in used.values()]]
        bound |= {c.id for c in rule.atoms[best].columns}
        mine, conjuncts = _decided(conjuncts, bound)
        places = tuple(sorted(used))
        probes.append(
            Probe(
                best,
                places,
                tuple(used[place][1] for place in places),
                tuple(used[place][2] for place in places),
                tuple(mine),
            )
        )
    return DeltaPlan(rule, start, tuple(first), tuple(probes))


def _decided(conjuncts: list[Expr], bound: set[int]) -> tuple[list[Expr], list[Expr]]:
    """Split conjuncts by whether all that they read is bound."""
    known = [{c.id for c in columns(each)} <= bound for each in conjuncts]
    both = list(zip(conjuncts, known, strict=True))
    return [each for each, is_known in both if is_known], [each for each, is_known in both if not is_known]


def _equalities(conjuncts: Iterable[Expr], atom: Atom, bound: set[int]) -> dict[int, tuple[Expr, Expr, bool]]:
    """Find the columns of an atom that equal something that is bound: with the conjunct, and whether NULL matches
    nothing."""
    places = {c.id: at for at, c in enumerate(atom.columns)}
    found = dict[int, tuple[Expr, Expr, bool]]()
    for conjunct in conjuncts:
        match conjunct:
            case Call("=" | "<=>" as name, (a, b)):
                for mine, other in ((a, b), (b, a)):
                    if isinstance(mine, Column) and mine.id in places and _can_be_looked_up(mine, other, bound):
                        found.setdefault(places[mine.id], (conjunct, other, name == "="))
                        break
    return found


def _can_be_looked_up(column: Column, value: Expr, bound: set[int]) -> bool:
    return {c.id for c in columns(value)} <= bound and _have_same_codes(column.type, value.type)


def _have_same_codes(a: Type, b: Type) -> bool:
    return a == b or (same_values(a, b) and a.is_integer and b.is_integer)


class _Step(NamedTuple):
    """A join of an evaluation: the columns after it, where they are, and where its values are in the rows before.

    Args:
        picks: As `combine_rows` takes them.
        given: None if values are computed, or may be NULL where that matches nothing.
    """

    ids: tuple[int, ...]
    picks: Words
    given: Words | None


class RuleEvaluator:
    """Evaluates a delta plan."""

    def __init__(self, plan: DeltaPlan, types: Sequence[Column]) -> None:
        self._plan, self._types = plan, types
        exprs = [*plan.conjuncts, *plan.rule.items]
        for probe in plan.probes:
            exprs += [*probe.given, *probe.conjuncts]
        self._compiled = {id(e): compile_expression(e) for e in exprs if not isinstance(e, Column)}
        self._columns = {c.id: c for atom in plan.rule.atoms for c in atom.columns}
        is_plain = [
            isinstance(item, Column) and _have_same_codes(item.type, column.type)
            for item, column in zip(plan.rule.items, types, strict=True)
        ]
        items = tuple(item.id for item in plan.rule.items if isinstance(item, Column)) if all(is_plain) else None
        ids = tuple(c.id for c in plan.rule.atoms[plan.start].columns)
        self._start, self._steps = ids, list[_Step]()
        for number, probe in enumerate(plan.probes):
            later = [e for p in plan.probes[number + 1 :] for e in (*p.given, *p.conjuncts)]
            needs = {c.id for e in (*probe.conjuncts, *later, *plan.rule.items) for c in columns(e)}
            own = [c.id for c in plan.rule.atoms[probe.occurrence].columns]
            is_last = number == len(plan.probes) - 1
            following = items if is_last and items and not probe.conjuncts else tuple(sorted(needs & {*ids, *own}))
            picks = np.array([_pick(id, ids, own) for id in following], np.int64)
            self._steps.append(_Step(following, picks, _places(probe, ids)))
            ids = following
        # NB: new·new − old·old = 2·new·δ − δ·δ, so what several atoms have changed at once is taken away again
        same = [probe.occurrence for probe in plan.probes_of(self.relation) if probe.occurrence > plan.start]
        self._changed_atoms = [also for count in range(len(same) + 1) for also in combinations(same, count)]
        self._is_made = bool(plan.probes) and ids == items
        """True if the columns after the last join are those of the rule's table."""

    @property
    def rule(self) -> Rule:
        return self._plan.rule

    @property
    def relation(self) -> RelationId:
        """The leaf or table that has to change for this to be evaluated."""
        return relation_of(self.rule.atoms[self._plan.start])

    def __call__(
        self, given: AtomRows, stored: Mapping[RelationId, Stored], changed: Stored | None, names: Dictionary
    ) -> list[tuple[Words, Words, Words]]:
        """Derive rows: their keys, the iterations in which they are derived, and how often.

        Args:
            changed: The same changes in a pool, if other atoms may read them, too.
        """
        out = []
        for also in self._changed_atoms:
            assert changed is not None or not also
            sources = [changed if p.occurrence in also else None for p in self._plan.probes]
            found = self._evaluate(given, stored, sources, names)
            if found is not None:
                keys, ranks, times = found
                out.append((keys, ranks, -times if len(also) % 2 else times))
        return out

    def _evaluate(
        self, given: AtomRows, stored: Mapping[RelationId, Stored], changed: Sequence[Stored | None], names: Dictionary
    ) -> tuple[Words, Words, Words] | None:
        plan, joined = self._plan, Joined(self._start, *map(np.ascontiguousarray, given))
        joined = self._restrict(plan.conjuncts, joined, names)
        for probe, source, step in zip(plan.probes, changed, self._steps, strict=True):
            if not len(joined.ranks):
                return None
            target = stored[relation_of(self.rule.atoms[probe.occurrence])] if source is None else source
            of, slots = self._match(probe, step.given, target, joined, names)
            _, rows, ranks, times = joined
            found = combine_rows(target.pool.frame, of, slots, rows, ranks, times, step.picks, target.facts)
            joined = Joined(step.ids, *found)
            joined = self._restrict(probe.conjuncts, joined, names)
        if not len(joined.ranks):
            return None
        keys = joined.rows
        if not self._is_made:
            keys = np.empty((len(joined.ranks), len(self.rule.items)), np.int64)
            for at, (item, column) in enumerate(zip(self.rule.items, self._types, strict=True)):
                keys[:, at] = self._codes_of(item, column, joined, names)
        return keys, joined.ranks + 1, -joined.times if self.rule.sign < 0 else joined.times

    def _match(
        self, probe: Probe, given: Words | None, target: Stored, joined: "Joined", names: Dictionary
    ) -> tuple[Words, Words]:
        """Find all pairs of a row and a slot that match.

        Args:
            given: Columns of the rows that have what is looked up.
        """
        if given is not None:
            return _look_up(probe.columns, joined.rows.take(given, axis=1), target.pool)
        count = len(joined.ranks)
        if not probe.columns:
            size = len(target.pool)
            return np.repeat(np.arange(count), size), np.tile(np.arange(size), count)
        bound = np.empty((count, len(probe.columns)), np.int64)
        known = np.ones(count, np.bool_)
        for at, (expr, strict) in enumerate(zip(probe.given, probe.strict, strict=True)):
            column = expr if isinstance(expr, Column) else Column(0, "", expr.type, expr.nullable)
            bound[:, at] = self._codes_of(expr, column, joined, names)
            if strict and expr.nullable:
                known &= ~_is_null(bound[:, at], expr.type)
        chosen = None if known.all() else np.flatnonzero(known)
        of, slots = _look_up(probe.columns, bound if chosen is None else bound[chosen], target.pool)
        return (of if chosen is None else chosen[of]), slots

    def _restrict(self, conjuncts: Sequence[Expr], joined: "Joined", names: Dictionary) -> "Joined":
        """Keep the rows for which all conjuncts are TRUE."""
        for conjunct in conjuncts:
            value = is_true(self._value(conjunct, joined, names))
            kept = full(Vec(value), conjunct.type, len(joined.ranks)).values
            if not np.all(kept):
                joined = Joined(joined.ids, joined.rows[kept], joined.ranks[kept], joined.times[kept])
        return joined

    def _codes_of(self, expr: Expr, column: Column, joined: "Joined", names: Dictionary) -> Words:
        if isinstance(expr, Column) and _have_same_codes(expr.type, column.type):
            return joined.column(expr.id)
        return encode(self._value(expr, joined, names), column, len(joined.ranks), names, expr)

    def _value(self, expr: Expr, joined: "Joined", names: Dictionary) -> Vec:
        def load(id: int) -> Vec:
            return decode(np.ascontiguousarray(joined.column(id)), self._columns[id], names)

        if isinstance(expr, Column):
            return load(expr.id)
        return self._compiled[id(expr)](VectorFrame(len(joined.ranks), {}, load))


class RuleEvaluators:
    """Evaluators of all rules of a fixpoint for the changes of each leaf and table.

    Args:
        types: The columns of each table.
    """

    def __init__(self, plans: Sequence[DeltaPlan], types: Sequence[Sequence[Column]]) -> None:
        self.plans, self._of_relation = plans, defaultdict[RelationId, list[RuleEvaluator]](list)
        self._repeated = set[RelationId]()  # those that a rule reads more than once
        for plan in plans:
            evaluator = RuleEvaluator(plan, types[plan.rule.table])
            self._of_relation[evaluator.relation].append(evaluator)
            if plan.probes_of(evaluator.relation):
                self._repeated.add(evaluator.relation)

    def derive(
        self, relation: RelationId, rows: AtomRows, stored: Mapping[RelationId, Stored], names: Dictionary
    ) -> Iterator[tuple[Rule, Words, Words, Words]]:
        """Derive what changed rows, which are stored, add, and what they take.

        Yielded are the rule, keys, the iterations in which they are derived, and how often.
        """
        changed = _pool_of_changes(self.plans, relation, rows) if relation in self._repeated else None
        for evaluator in self._of_relation[relation]:
            for keys, iterations, times in evaluator(rows, stored, changed, names):
                yield evaluator.rule, keys, iterations, times


def _pool_of_changes(plans: Sequence[DeltaPlan], relation: RelationId, rows: AtomRows) -> Stored:
    """Make a pool of changed rows, for rules that read their table more than once."""
    width, is_recursive = rows.keys.shape[1], relation[0]
    slices = slices_of(plans, relation, None if is_recursive else width)
    pool = Pool(width + is_recursive, Payload((Ring.COUNT,)), slices=slices)
    keys = np.column_stack([rows.keys, rows.ranks]) if is_recursive else rows.keys
    pool.upsert(np.ascontiguousarray(keys), np.ascontiguousarray(rows.times)[:, None])
    return Stored(pool, width, is_recursive, rank_in_keys=is_recursive, is_counted=True)


class Joined(NamedTuple):
    """Rows that are joined so far: the numbers of their columns, codes, ranks and times."""

    ids: tuple[int, ...]
    rows: Words
    ranks: Words
    times: Words

    def column(self, id: int) -> Words:
        """Return the codes of a column."""
        return self.rows[:, self.ids.index(id)]


def _places(probe: Probe, ids: Sequence[int]) -> Words | None:
    """Find the values that a probe looks up among the columns of rows; None if they are not simply there."""
    given = list(zip(probe.given, probe.strict, strict=True))
    if not given or any(not isinstance(expr, Column) or (strict and expr.nullable) for expr, strict in given):
        return None
    return np.array([ids.index(expr.id) for expr, _ in given if isinstance(expr, Column)], np.int64)


def _look_up(columns: tuple[int, ...], values: Words, pool: Pool) -> tuple[Words, Words]:
    """Find all pairs of a row of values and a slot of a pool whose columns have them."""
    if columns in pool.slices:
        return pool.slice(pool.slices.index(columns), values)
    slots = pool.probe(values)
    of = np.flatnonzero(slots >= 0)
    return of, slots[of]


def _pick(id: int, ids: Sequence[int], own: Sequence[int]) -> int:
    """Find a column among those of a row, or as complement among those of the record that it is joined with."""
    return ids.index(id) if id in ids else ~own.index(id)


def _is_null(codes: Words, type: Type) -> Any:
    return codes < 0 if type.kind is Kind.VARCHAR else codes == NULL
