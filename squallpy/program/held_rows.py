"""Rows of views that are held, as changes of these, and in place of the rows that other views are made of.

held      Q1(a, d) := Sum_[a, d](R(a, b, v) ⋈ (b > 3) ⋈ (d := v * 2))
missing   Q3(a)    := Sum_[a](R(a, b, v) ⋈ (b > 3) ⋈ (a > 0) ⋈ ⟨1, v * 2⟩)
     →    Q3(a)    += Sum_[a](Δheld Q1(a, d) ⋈ (a > 0) ⋈ ⟨1, d⟩)
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.base.rings import Ring
from squallpy.catalog.relation import COMPUTED, Relation
from squallpy.logical.expression_builders import replace_known
from squallpy.logical.expressions import FALSE, Column, Expr, columns, substitute
from squallpy.program.calculus import Assign, Cmp, Factor, Lane, Rel, rename_column, rename_factor, variables
from squallpy.program.trigger_program import Statement
from squallpy.program.views import Monomial, Ref, View

HELD = Relation("rows of views", (), True, COMPUTED)
"""The relation that changes when the rows of views come as deltas of these."""
_NAMESPACE = 1 << 40  # NB: the variables of a cover must not be those of what it covers
_NEVER = Cmp(FALSE)
AtomField = tuple[int, str]
"""A field of one of some atoms."""


def held_delta(view: str) -> str:
    """Name the delta by which the rows of a held view come."""
    return f"Δheld {view}"


@dataclass(frozen=True, slots=True)
class Cover:
    """A held view from whose rows views of the same relations, less or the same of them, can be computed.

    Args:
        keys: Its keys: variables of fields, and computed ones.
        atoms: The relations that it joins.
        tests: What all its rows pass.
        computed: The keys that are computed, by expression.
        lanes: Its lanes.
    """

    view: View
    keys: tuple[Column, ...]
    atoms: tuple[Rel, ...]
    tests: tuple[Cmp, ...]
    computed: Mapping[Expr, Column]
    lanes: tuple[Lane | None, ...]

    @classmethod
    def of(cls, view: View) -> "Cover | None":
        """Read a view as a cover; None if it is a sum of several terms, or of rows of other rings than numbers."""
        if len(view.terms) != 1 or not _has_numbers(view):
            return None
        (term,) = view.terms
        inside = {v for factor in term.body for v in variables(factor)}.union(view.keys)
        names: dict[int, Expr] = {v.id: replace(v, id=v.id + _NAMESPACE) for v in inside}
        factors = [rename_factor(factor, names) for factor in term.body]
        keys = tuple(rename_column(key, names) for key in view.keys)
        computed = {f.value: f.variable for f in factors if isinstance(f, Assign) and f.variable in keys}
        lanes = tuple(None if lane is None else tuple(substitute(f, names) for f in lane) for lane in term.lanes)
        atoms = tuple(factor for factor in factors if isinstance(factor, Rel))
        return cls(view, keys, atoms, tuple(f for f in factors if isinstance(f, Cmp)), computed, lanes)

    def statements(self, target: View, is_partial: bool = False) -> tuple[Statement, ...] | None:
        """Compute a view, or a pre-aggregated batch, from rows of this one; None if these have not what it reads."""
        if not _has_numbers(target):
            return None
        found = [self._statement(target, term, is_partial) for term in target.terms]
        return None if None in found else tuple(each for each in found if each)

    def _statement(self, target: View, term: Monomial, is_partial: bool) -> Statement | None:
        names = _match(term.atoms, self.atoms)
        if names is None:
            return None
        factors = [rename_factor(factor, names) for factor in term.body if not isinstance(factor, Rel)]
        if not {*self.tests} <= {*factors}:
            return None
        filters = tuple(self._by_keys(factor) for factor in factors if factor not in self.tests)
        bound = frozenset((*self.keys, *(factor.variable for factor in filters if isinstance(factor, Assign))))
        keys = tuple(rename_column(key, names) for key in target.keys)
        if not bound.issuperset(keys) or not all(factor.reads <= bound for factor in filters):
            return None
        lanes, picks = list[Lane | None](), list[int]()
        for lane in term.lanes:
            given = None if lane is None else tuple(substitute(factor, names) for factor in lane)
            found = self._lane(given, bound)
            if found is None:
                return None
            lanes.append(None if lane is None else found[1])
            picks.append(found[0])
        ref = Ref(held_delta(self.view.name), self.keys, tuple(picks))
        return Statement(target.name, keys, (ref,), filters, tuple(lanes), is_partial)

    def _lane(self, lane: Lane | None, bound: frozenset[Column]) -> tuple[int, Lane] | None:
        """Find a lane that a lane is a multiple of, by factors that are known of each row, and these."""
        for number, mine in sorted(enumerate(self.lanes), key=lambda each: -len(each[1] or ())):
            if mine is not None:
                left = [*(lane or ())]
                for factor in mine if lane is not None else ():
                    if factor not in left:
                        break
                    left.remove(factor)
                else:
                    known = tuple(replace_known(factor, self.computed) for factor in left)
                    if all(columns(factor) <= bound for factor in known):
                        return number, known
        return None

    def _by_keys(self, factor: Factor) -> Factor:
        """Read keys that are computed instead of computing them."""
        match factor:
            case Cmp(predicate):
                return Cmp(replace_known(predicate, self.computed))
            case Assign(variable, value):
                return Assign(variable, replace_known(value, self.computed))
        return factor


def covered(view: View, held: Iterable[Cover]) -> tuple[str, tuple[Statement, ...]] | None:
    """Find a held view from whose rows a view can be computed, and the statements that do it."""
    for cover in held:
        found = cover.statements(view)
        if found is not None:
            return cover.view.name, found
    return None


def covering(deltas: Iterable[View], held: Iterable[Cover]) -> tuple[str, list[Statement]] | None:
    """Find a held view from whose rows all of some pre-aggregated batches can be computed, and the statements."""
    wanted = tuple(deltas)
    for cover in held:
        found = [cover.statements(delta, is_partial=True) for delta in wanted]
        if None not in found:
            return cover.view.name, [statement for each in found for statement in each or ()]
    return None


def is_empty(view: View) -> bool:
    """True if no row passes the tests of a view, such as one that only stands for a row of constants."""
    return all(any(factor == _NEVER for factor in term.body) for term in view.terms)


def covers(views: Iterable[View], held: Collection[str]) -> list[Cover]:
    """List those views that are held as covers."""
    found = (Cover.of(view) for view in views if view.name in held)
    return [cover for cover in found if cover]


def _match(theirs: Sequence[Rel], mine: Sequence[Rel]) -> dict[int, Expr] | None:
    """Name the variables of a cover by those of the same fields in what it covers; None if it joins otherwise."""
    left, fields = [*enumerate(mine)], dict[AtomField, Column]()
    for atom in theirs:
        number = next((n for n, each in left if each.relation == atom.relation), None)
        if number is None:
            return None
        left = [(n, each) for n, each in left if n != number]
        fields |= {(number, field): v for field, v in atom.fields}
    own = {(number, field): v for number, atom in enumerate(mine) for field, v in atom.fields}
    if left or not _are_joined(fields, own) or not _are_joined(own, fields):
        return None
    return {v.id: own[field] for field, v in fields.items() if field in own}


def _are_joined(given: Mapping[AtomField, Column], other: Mapping[AtomField, Column]) -> bool:
    """True if fields that have one variable in some atoms have one in the others, too."""
    joined = defaultdict[Column, list[AtomField]](list)
    for field, v in given.items():
        joined[v].append(field)
    return all(
        len(fields) == 1 or (all(p in other for p in fields) and len({other[p] for p in fields}) == 1)
        for fields in joined.values()
    )


def _has_numbers(view: View) -> bool:
    """True if the payloads of a view are counts and sums."""
    return all(isinstance(ring, Ring) for ring in view.rings)
