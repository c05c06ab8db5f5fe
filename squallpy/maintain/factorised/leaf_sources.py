"""Leaves of a view tree: the atoms of a join with the predicates that belong to each of them.

Sum_[](FACT(k, x) ⋈ DIM(k, y) ⋈ (x > 1) ⋈ ⟨LIFT(x, 0)·LIFT(y, 1)⟩)   →   FACT(k, x) ⋈ (x > 1),  DIM(k, y)
"""

from collections.abc import Sequence

from squallpy.base.free_names import distinct_names
from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr, substitute
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.program.calculus import Assign, Cmp, Factor, Lane, Rel, lifted, variables
from squallpy.program.components import bound_by
from squallpy.program.views import View


@dataclass(frozen=True, slots=True)
class LeafSource:
    """A leaf of a view tree with its atom, and the assignments and predicates of this atom alone."""

    leaf: Leaf
    atom: Rel
    rest: tuple[Factor, ...]

    @property
    def body(self) -> tuple[Factor, ...]:
        return (self.atom, *self.rest)

    def computed(self, lane: Lane) -> Lane:
        """Write a lane in terms of the atom's fields: (v := x + 1), ⟨LIFT(v, 0)⟩   →   ⟨LIFT(x + 1, 0)⟩"""
        values = dict[int, Expr]()
        for factor in self.rest:
            if isinstance(factor, Assign):
                values[factor.variable.id] = substitute(factor.value, values)
        return tuple(substitute(factor, values) for factor in lane)


def sources_of(view: View, aliases: tuple[str, ...]) -> tuple[tuple[LeafSource, ...], JoinGraph]:
    """List the leaves of a view that is a join of atoms, with a lane that lifts its features, and their join graph.

    Args:
        aliases: The names of the atoms in the query.
    """
    (term,) = view.terms
    (lane,) = term.lanes
    features = tuple(v for factor in lane or () if (value := lifted(factor)) and isinstance(v := value[0], Column))
    rest = list(dict.fromkeys(f for f in term.body if not isinstance(f, Rel)))
    sources, taken = list[LeafSource](), set[int]()
    known = aliases if len(aliases) == len(term.atoms) else [atom.relation.name for atom in term.atoms]
    for name, atom in zip(distinct_names(known), term.atoms, strict=True):
        bound, own = bound_by((atom,)), list[Assign | Cmp]()
        while found := [f for f in rest if id(f) not in taken and f.reads <= bound]:
            own += found
            taken |= {id(f) for f in found}
            bound |= bound_by(found)
        wanted = {v for v in bound if v in features or v in view.keys or _is_shared(v, atom, term.atoms, rest, own)}
        kept = tuple(v for v in (*(v for _, v in atom.fields), *sorted(bound, key=lambda v: v.id)) if v in wanted)
        columns = {v: name for name, v in reversed(atom.fields)}
        leaf_variables = tuple(dict.fromkeys(kept))
        unread = tuple(f.name for f in atom.relation.fields if f.name not in {columns.get(v) for v in leaf_variables})
        computed = [v for v in leaf_variables if v not in columns]
        fields = [f.name for f in atom.relation.fields]
        columns |= zip(computed, distinct_names([*fields, *(v.name for v in computed)])[len(fields) :], strict=True)
        names = tuple(columns[v] for v in leaf_variables)
        key, has_deletes = _primary_key(atom), atom.relation.has_deletes
        leaf = Leaf(name, leaf_variables, atom.relation.stream, key, names, unread, has_deletes)
        sources.append(LeafSource(leaf, atom, tuple(own)))
    assert len(taken) == len(rest), "a predicate of several relations is refused where the query is bound"
    return tuple(sources), JoinGraph(tuple(source.leaf for source in sources), features, view.keys)


def _primary_key(atom: Rel) -> tuple[Column, ...]:
    fields = dict(atom.fields)
    key = [fields.get(name) for name in atom.relation.primary_key]
    return tuple(v for v in key if v) if all(key) else ()


def _is_shared(v: Column, atom: Rel, atoms: tuple[Rel, ...], rest: Sequence[Factor], own: Sequence[Factor]) -> bool:
    """True if another atom, or what belongs to it, has a variable."""
    others = any(v in a.reads for a in atoms if a is not atom)
    return others or any(v in variables(f) for f in rest if all(f is not mine for mine in own))
