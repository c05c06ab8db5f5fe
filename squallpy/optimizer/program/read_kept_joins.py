"""Joins read from views that hold them, instead of being computed for each row of a batch.

    M_OL(c, s) := Sum_[c, s](O(o, c) ⋈ L(o, s, v) ⋈ ⟨v⟩)                    which changes of customers need

    Q(n) += ΔS(s, n) ⋈ M_L(o, s) ⋈ M_O(o, c) ⋈ M_C(c, n)    →    Q(n) += ΔS(s, n) ⋈ M_OL(c, s) ⋈ M_C(c, n)

A view that other statements need may hold a join that a statement computes: it has at most as many records as the join
has rows, and what was an index of M_L by s is one of the smaller view. Nothing else may read the variables that the
view has no keys for. Views of which each row finds one record, by PRIMARY KEYs, stay: those that leave rows out are
looked up first then.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

from squallpy.base.records import dataclass
from squallpy.base.rings import Ring
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Column, Expr, columns, substitute
from squallpy.program.calculus import Cmp, Lane, Rel, rename_factor, variables
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram, without_unread_views
from squallpy.program.unique_keys import Keys, finds_one, known_keys
from squallpy.program.views import Monomial, Ref, View, renamed_filters

Names = Mapping[Column, Column]


def read_kept_joins(program: TriggerProgram, allocator: ColumnAllocator) -> TriggerProgram:
    """Let statements read joins from views that hold them, and drop the views that nothing reads then."""
    held = _HeldJoins(view for view in program.stored if _is_simple(view))
    keys = known_keys(program)
    triggers = tuple(_rewritten(trigger, held, keys, allocator) for trigger in program.triggers)
    return program if triggers == program.triggers else without_unread_views(replace(program, triggers=triggers))


def _is_simple(view: View) -> bool:
    """True if it joins relations, each once, under predicates, and its sums are numbers."""
    term, *others = view.terms
    if others or not all(isinstance(f, Rel | Cmp) for f in term.body) or len(_relations(view)) < len(term.atoms):
        return False
    return all(isinstance(ring, Ring) for ring in view.rings)


def _relations(view: View) -> frozenset[str]:
    return frozenset(atom.relation.name for atom in view.atoms)


class _HeldJoins:
    """Views that join relations, each once, and the relations of each."""

    def __init__(self, views: Iterable[View]) -> None:
        self.views = {view.name: view for view in views}
        self.relations = {name: _relations(view) for name, view in self.views.items()}
        joins = sorted((view for view in self.views.values() if view.degree > 1), key=lambda view: -view.degree)
        self._places = defaultdict[str, list[tuple[int, View]]](list)  # of joins, by their first relation
        for place, view in enumerate(joins):
            self._places[min(self.relations[view.name])].append((place, view))

    def joins_within(self, statement: Statement) -> list[View]:
        """List the joins of relations whose views a statement reads, those of the most relations first."""
        read = frozenset[str]().union(*(self.relations.get(ref.name, ()) for ref in statement.refs[1:]))
        found = (some for name in read for some in self._places.get(name, ()))
        return [view for _, view in sorted(found, key=itemgetter(0)) if self.relations[view.name] <= read]

    def parts(self, statement: Statement, view: View) -> list[Ref]:
        """List the uses of views in a statement that together join each relation of `view` once; none if none do."""
        wanted, parts, joined = self.relations[view.name], list[Ref](), Counter[str]()
        for ref in statement.refs[1:]:
            own = self.relations.get(ref.name)
            if own and ref.picks and not wanted.isdisjoint(own):
                parts.append(ref)
                joined.update(own)
        return parts if joined == Counter(wanted) else []


def _rewritten(trigger: Trigger, held: _HeldJoins, keys: Keys, allocator: ColumnAllocator) -> Trigger:
    """Read joins from those views that the trigger does not change."""
    changed, views = {statement.target for statement in trigger.statements}, held.views
    statements = list[Statement]()
    for statement in trigger.statements:
        for view in held.joins_within(statement):
            parts = held.parts(statement, view) if view.name not in changed else []
            if len(parts) < 2:
                continue
            others = [ref for ref in statement.refs if ref not in parts]
            bound = frozenset[Column]().union(*(ref.bound_variables for ref in others))
            if all(_finds_one(views[ref.name], ref, bound, keys) for ref in parts):
                continue
            found = _Join.of(statement, parts, views, allocator).held_by(view, allocator)
            statement = replace(statement, refs=(*others, found)) if found else statement
        statements.append(statement)
    return replace(trigger, statements=tuple(statements))


def _finds_one(view: View, ref: Ref, bound: Collection[Column], keys: Keys) -> bool:
    """True if variables in `bound` leave one record of a view at most."""
    return finds_one(view, [key for key, v in zip(view.keys, ref.variables, strict=True) if v in bound], keys)


@dataclass(frozen=True, slots=True)
class _Join:
    """The join of some uses of views in a statement, written out.

    Args:
        term: Its atoms and predicates, and its factors of each lane of the statement.
        read: The variables that are read elsewhere in the statement.
    """

    term: Monomial
    read: frozenset[Column]

    @staticmethod
    def of(
        statement: Statement, parts: Sequence[Ref], views: Mapping[str, View], allocator: ColumnAllocator
    ) -> "_Join":
        """Write out the join of `parts`."""
        terms = [_term(views[ref.name], ref, allocator) for ref in parts]
        lanes = list[Lane | None]()
        for own in zip(*(term.lanes for term in terms), strict=True):
            is_added = all(lane is not None for lane in own)
            lanes.append(tuple(f for lane in own for f in lane or ()) if is_added else None)
        body = tuple(dict.fromkeys(factor for term in terms for factor in term.body))
        elsewhere = (ref.bound_variables for ref in statement.refs if ref not in parts)
        factors = (columns(f) for lane in statement.lanes for f in lane or ())
        read = frozenset(statement.keys).union(*elsewhere, *factors, *map(variables, statement.filters))
        return _Join(Monomial(body, tuple(lanes)), read)

    def held_by(self, view: View, allocator: ColumnAllocator) -> Ref | None:
        """Return the use of a view that replaces this join; None if the view does not hold it."""
        (term,), names = view.terms, self._names(view)
        if names is None or not self._bound & self.read <= {names.get(key) for key in view.keys}:
            return None
        held, own = _products(term, names), _products(self.term, {v: v for v in self._bound})
        if renamed_filters(term, names) != renamed_filters(self.term, {}) or not all(
            p is None or p in held for p in own
        ):
            return None
        keys = (names.get(key) or replace(key, id=next(allocator.ids)) for key in view.keys)
        return Ref(view.name, tuple(keys), tuple(-1 if p is None else held.index(p) for p in own))

    @property
    def _bound(self) -> frozenset[Column]:
        return frozenset[Column]().union(*(atom.reads for atom in self.term.atoms))

    def _names(self, view: View) -> Names | None:
        """Pair the variables of a view with those of this join, field by field; None if they join other fields.

        A field that one of them alone has joins nothing.
        """
        (term,) = view.terms
        ours, theirs = _fields(self.term), _fields(term)
        pairs = {(theirs[field], ours[field]) for field in ours.keys() & theirs.keys()}
        names = dict(pairs)
        is_paired = len(names) == len(pairs) == len({*names.values()}) and _read(term) <= names.keys()
        is_joined = _joins(ours, ours.keys() - theirs) or _joins(theirs, theirs.keys() - ours)
        return names if is_paired and not is_joined else None


_Fields = Mapping[tuple[str, str], Column]  # variables by relation and field


def _fields(term: Monomial) -> _Fields:
    return {(atom.relation.name, name): v for atom in term.atoms for name, v in atom.fields}


def _read(term: Monomial) -> frozenset[Column]:
    """Collect the variables that predicates and lanes read."""
    lanes = (columns(factor) for lane in term.lanes for factor in lane or ())
    return frozenset[Column]().union(*lanes, *(f.reads for f in term.body if isinstance(f, Cmp)))


def _joins(fields: _Fields, some: Iterable[tuple[str, str]]) -> bool:
    """True if some of the fields are equal to others."""
    times = Counter(fields.values())
    return any(times[fields[each]] > 1 for each in some)


def _term(view: View, ref: Ref, allocator: ColumnAllocator) -> Monomial:
    """Write out a use of a view: its term in the statement's variables, with a lane for each lane of the statement."""
    (term,) = view.terms
    names: dict[int, Expr] = {key.id: v for key, v in zip(view.keys, ref.variables, strict=True)}
    inside = {v for atom in term.atoms for v in atom.reads}.difference(view.keys)
    names |= {v.id: replace(v, id=next(allocator.ids)) for v in inside}
    lanes = (term.lanes[pick] if pick >= 0 else None for pick in ref.picks)
    body = tuple(rename_factor(factor, names) for factor in term.body)
    return Monomial(body, tuple(lane and tuple(substitute(f, names) for f in lane) for lane in lanes))


def _products(term: Monomial, names: Names) -> list[frozenset[tuple[Expr, int]] | None]:
    """List the lanes of a term, whose factors have no order, in other variables; None for those that add nothing."""
    by_id: dict[int, Expr] = {v.id: name for v, name in names.items()}
    return [
        None if lane is None else frozenset(Counter(substitute(f, by_id) for f in lane).items()) for lane in term.lanes
    ]
