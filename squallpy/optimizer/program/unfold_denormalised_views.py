"""Denormalised views unfolded: a view that repeats the rows of another one, with columns of others by their keys.

    M_CO(o, p, name) := Sum_[o, p, name](C(c, name) ⋈ O(o, c, p)),   where o and c are PRIMARY KEYs

    Q += ΔL(o) ⋈ M_CO(o, p, name)   →   Q += ΔL(o) ⋈ M_O(o, c, p) ⋈ M_C(c, name)

Where a reader knows the key of O it finds one record either way. Kept, the view is a second copy of M_O, which changes
of C need in any case; unfolded, a reader does one more lookup for each relation. It is no copy, and kept, if a
predicate on C leaves rows out, if C is an auxiliary relation, or if it has fewer records than O.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Column
from squallpy.program.calculus import Cmp, Rel
from squallpy.program.trigger_program import Statement, Trigger, TriggerProgram, without_unread_views
from squallpy.program.unique_keys import Keys, determined
from squallpy.program.views import Monomial, Ref, View, renamed_filters


def unfold_denormalised_views(program: TriggerProgram, columns: ColumnAllocator) -> TriggerProgram:
    """Replace denormalised views by the joins that they are, and drop the views that nothing reads then."""
    keys = {relation.name: relation.primary_key for relation in program.relations}
    tables = [view for view in program.stored if _is_of_one_relation(view)]
    required = program.required
    found = (_unfold(view, keys, tables) for view in program.stored if view.name not in required)
    joins = {join.view.name: join for join in found if join}
    for trigger in program.triggers:
        for statement in trigger.statements:
            for ref in statement.refs:
                if ref.name in joins and not joins[ref.name].is_found_by(ref, statement):
                    del joins[ref.name]
    if not joins:
        return program
    triggers = [_without(trigger, joins) for trigger in program.triggers]
    triggers = [
        replace(t, statements=tuple(_unfolded(s, joins, t.relation.name, columns) for s in t.statements))
        for t in triggers
    ]
    views = tuple(view for view in program.views if view.name not in joins)
    return without_unread_views(replace(program, views=views, triggers=tuple(triggers)))


@dataclass(frozen=True, slots=True)
class _Factor:
    """A view of one relation, as a factor of a join: the variables of its keys there, None for those not read."""

    view: View
    variables: tuple[Column | None, ...]
    lane: int


@dataclass(frozen=True, slots=True)
class _Join:
    """A denormalised view as a join of views; `key` are the positions of its keys that find a record."""

    view: View
    factors: tuple[_Factor, ...]
    key: tuple[int, ...]

    def is_found_by(self, ref: Ref, statement: Statement) -> bool:
        """True if each row of the statement's delta finds one record."""
        return ref.row is None and {ref.variables[at] for at in self.key} <= {*statement.refs[0].variables}

    def refs(self, ref: Ref, changed: str, columns: ColumnAllocator) -> Iterator[Ref]:
        """Yield uses of the factors instead of a use of the view, by a trigger of the relation `changed`."""
        names = dict(zip(self.view.keys, ref.variables, strict=True))
        for factor in self.factors:
            variables = list[Column]()
            for key, v in zip(factor.view.keys, factor.variables, strict=True):
                if v is None:
                    variables.append(replace(key, id=next(columns.ids)))
                    continue
                if v not in names:
                    names[v] = replace(v, id=next(columns.ids))
                variables.append(names[v])
            picks = tuple(factor.lane if pick >= 0 else pick for pick in ref.picks)
            is_after = ref.is_after and any(atom.relation.name == changed for atom in factor.view.atoms)
            yield Ref(factor.view.name, tuple(variables), picks, is_after=is_after)


def _unfold(view: View, keys: Keys, tables: Sequence[View]) -> _Join | None:
    """Write a view as a join by key of views of one relation each; None if it is not denormalised."""
    term, *others = view.terms
    if others or len(term.atoms) < 2 or term.lanes != ((),) or not all(isinstance(f, Rel | Cmp) for f in term.body):
        return None
    for root in term.atoms:
        found = _key(root, keys)
        if found and found <= {*view.keys} and _widen(root, term, keys):
            factors = [_factor(atom, atom is root, term, view.keys, tables) for atom in term.atoms]
            if all(factors):
                return _Join(view, tuple(f for f in factors if f), tuple(view.keys.index(v) for v in found))
    return None


def _widen(root: Rel, term: Monomial, keys: Keys) -> bool:
    """True if each row of an atom has one row of each other atom, by the key of that, and all rows of these count."""
    others = [atom for atom in term.atoms if atom is not root]
    owned = [v for atom in others for v in atom.reads - _key(atom, keys)]
    is_filtered = any(isinstance(f, Cmp) and not f.reads <= root.reads for f in term.body)
    if is_filtered or len({*owned}) < len(owned) or not root.reads.isdisjoint(owned):
        return False
    whole = frozenset(owned) | root.reads <= determined(term, _key(root, keys), keys)
    return whole and all(_key(atom, keys) and atom.relation.stream for atom in term.atoms)


def _key(atom: Rel, keys: Keys) -> frozenset[Column]:
    """Return the variables of an atom's primary key; none if it has not all of them, or there is none."""
    fields, key = dict(atom.fields), keys.get(atom.relation.name, ())
    return frozenset(fields[name] for name in key) if fields.keys() >= {*key} else frozenset()


def _factor(
    atom: Rel, is_root: bool, term: Monomial, keys: Collection[Column], tables: Sequence[View]
) -> _Factor | None:
    """Find the smallest view that has the rows of an atom of a term, without others than its predicates leave out.

    All of these have to be true of the root's.
    """
    fields, filters = dict(atom.fields), {f for f in term.body if isinstance(f, Cmp)}
    wanted = atom.reads & frozenset(keys).union(*(other.reads for other in term.atoms if other is not atom))
    best: _Factor | None = None
    for view in tables:
        (own_term,) = view.terms
        (own,) = own_term.atoms
        names = {v: fields[name] for name, v in own.fields if name in fields}
        variables = tuple(names.get(key) for key in view.keys)
        found = renamed_filters(own_term, names)
        fits = own.relation is atom.relation and wanted <= {*variables} and found <= filters
        if fits and (found == filters or not is_root) and (best is None or len(variables) < len(best.variables)):
            best = _Factor(view, variables, own_term.lanes.index(()))
    return best


def _is_of_one_relation(view: View) -> bool:
    """True if it has the rows of one relation, and how often each is there."""
    term, *others = view.terms
    return not others and len(term.atoms) == 1 and () in term.lanes and not any(atom.delta for atom in term.atoms)


def _unfolded(statement: Statement, joins: Mapping[str, _Join], changed: str, columns: ColumnAllocator) -> Statement:
    refs = (joins[r.name].refs(r, changed, columns) if r.name in joins else (r,) for r in statement.refs)
    return replace(statement, refs=tuple(ref for some in refs for ref in some))


def _without(trigger: Trigger, views: Collection[str]) -> Trigger:
    """Drop the statements that add to some views, and deltas that nothing reads then."""
    return trigger.with_statements(s for s in trigger.statements if s.target not in views)
