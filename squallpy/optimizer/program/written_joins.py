"""Uses of views in a statement, written out as one join of relations, and the views that hold its rows.

M_L(o, s) ⋈ M_O(o, c)   →   L(o, s, v) ⋈ O(o, c) ⋈ ⟨v⟩, held by M_OL(c, s) := Sum_[c, s](O(o, c) ⋈ L(o, s, v) ⋈ ⟨v⟩)
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.base.rings import Ring
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expressions import Column, Expr, columns, substitute
from squallpy.program.calculus import Cmp, Lane, Rel, rename_factor, ring, variables
from squallpy.program.trigger_program import Statement
from squallpy.program.views import Monomial, Ref, View, renamed_filters

Names = Mapping[Column, Column]


def is_simple(view: View) -> bool:
    """True if it joins relations, each once, under predicates, and its sums are numbers."""
    term, *others = view.terms
    if others or not all(isinstance(f, Rel | Cmp) for f in term.body) or len(relations_of(view)) < len(term.atoms):
        return False
    return all(isinstance(ring, Ring) for ring in view.rings)


def relations_of(view: View) -> frozenset[str]:
    """Collect the names of the relations that a view joins."""
    return frozenset(atom.relation.name for atom in view.atoms)


@dataclass(frozen=True, slots=True)
class Join:
    """The join of some uses of views in a statement, written out.

    Args:
        term: Its atoms and predicates, and its factors of each lane of the statement.
        read: The variables that are read elsewhere in the statement.
    """

    term: Monomial
    read: frozenset[Column]

    @staticmethod
    def of(statement: Statement, parts: Sequence[Ref], views: Mapping[str, View], allocator: ColumnAllocator) -> "Join":
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
        return Join(Monomial(body, tuple(lanes)), read)

    def held_by(self, view: View, allocator: ColumnAllocator) -> Ref | None:
        """Return the use of a view that replaces this join; None if the view does not hold it."""
        found = self.computed_from(view, allocator)
        return found[0] if found and not any(found[1]) else None

    def computed_from(self, view: View, allocator: ColumnAllocator) -> tuple[Ref, tuple[Lane, ...]] | None:
        """Return the use of a view that replaces this join, and what its keys have of each lane; None if none is.

        V(a) := Sum_[a](R(a, b) ⋈ ⟨b⟩)   →   V′(a, b) := Sum_[a, b](R(a, b)), with ⟨b⟩
        """
        (term,), names = view.terms, self._names(view)
        if names is None or renamed_filters(term, names) != renamed_filters(self.term, {}):
            return None
        known = {names[key] for key in view.keys if key in names}
        if not self._bound & self.read <= known:
            return None
        held, own = _products(term, names), _products(self.term, {v: v for v in self._bound})
        picks, rest = list[int](), list[Lane]()
        for lane, product in zip(self.term.lanes, own, strict=True):
            left: Lane = ()
            if product is not None and product not in held:
                if lane is None or ring(lane) is Ring.REAL or not columns_of(lane) <= known:
                    return None
                left, product = lane, _ONE
            if product is not None and product not in held:
                return None
            picks.append(-1 if product is None else held.index(product))
            rest.append(left)
        keys = (names.get(key) or replace(key, id=next(allocator.ids)) for key in view.keys)
        return Ref(view.name, tuple(keys), tuple(picks)), tuple(rest)

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
        is_paired = len(names) == len(pairs) == len({*names.values()}) and _compared(term) <= names.keys()
        is_joined = _joins(ours, ours.keys() - theirs) or _joins(theirs, theirs.keys() - ours)
        return names if is_paired and not is_joined else None


_Fields = Mapping[tuple[str, str], Column]  # variables by relation and field


def _fields(term: Monomial) -> _Fields:
    return {(atom.relation.name, name): v for atom in term.atoms for name, v in atom.fields}


def _compared(term: Monomial) -> frozenset[Column]:
    """Collect the variables that predicates read."""
    return frozenset[Column]().union(*(f.reads for f in term.body if isinstance(f, Cmp)))


def columns_of(lane: Lane) -> frozenset[Column]:
    """Collect the variables of a product."""
    return frozenset[Column]().union(*map(columns, lane))


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


_Product = frozenset[tuple[Expr, int]]
_ONE: _Product = frozenset()


def _products(term: Monomial, names: Names) -> list[_Product | None]:
    """List the lanes of a term in other variables, their factors in no order.

    None stands for those that add nothing, and those of variables without a name.
    """
    by_id: dict[int, Expr] = {v.id: name for v, name in names.items()}
    return [
        None
        if lane is None or not columns_of(lane) <= names.keys()
        else frozenset(Counter(substitute(f, by_id) for f in lane).items())
        for lane in term.lanes
    ]
