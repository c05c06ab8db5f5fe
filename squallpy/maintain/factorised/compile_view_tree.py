"""View trees → views and statements of the trigger program: an update goes from a leaf to the root.

    V()  ⟨x, y⟩                  ΔV_R(k)⟨x⟩  :=  Sum_[k](ΔR(k, x))
    ├─ V_R(k) ⟨x⟩  over R   →    V_R(k)      +=  ΔV_R(k)
    └─ V_S(k) ⟨y⟩  over S        V()         +=  Sum_[](ΔV_R(k) ⋈ V_S(k))

Only the views on the path change; those beside it are read. Where a relation is there more than once, its leaves take
turns, from left to right in the tree: each path reads the views to its left after the batch, and those to its right
before it. So none is read of which some leaves had their turn and others did not.

A virtual view has neither records nor a change: a statement goes on from the view below it to the one above, and what
would read it joins its children.

Several trees over one order, whose roots have keys of their own, share the views and changes that are the same.

Source: `fivm-on-flink` §3.5 and Alg. 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from itertools import pairwise

from squallpy.base.free_names import FreeNames
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised import view_tree
from squallpy.maintain.factorised.join_graph import Leaf
from squallpy.maintain.factorised.leaf_sources import LeafSource
from squallpy.program.calculus import Assign, Lane, lift
from squallpy.program.components import Component, prune
from squallpy.program.trigger_program import Statement
from squallpy.program.view_registry import ViewRegistry
from squallpy.program.views import Monomial, Ref, View

Signature = tuple[tuple[int, ...], tuple[int, ...]]
"""The ids of a node's keys, and its leaves: in trees that lift alike, equal nodes are one view."""


@dataclass(frozen=True, slots=True)
class Root:
    """A view tree, with what its root assigns to the keys of the view that it adds to."""

    node: view_tree.ViewNode
    assigns: tuple[Assign, ...] = ()


@dataclass(slots=True)
class FactorisedView:
    """A view of a join, maintained by view trees: each adds its own records.

    Args:
        numbers: The numbers of the lifted variables in the cofactor ring, which is of this `degree`.
        free_names: The names of the program's views, of which it takes its own.
    """

    roots: tuple[Root, ...]
    sources: tuple[LeafSource, ...]
    name: str
    keys: tuple[Column, ...]
    numbers: dict[Column, int]
    free_names: FreeNames
    degree: int = 1
    _names: dict[Signature, str] = field(default_factory=dict)
    _changes: dict[str, int] = field(default_factory=dict)

    @property
    def root(self) -> View:
        """The view that the roots add to."""
        body = [f for source in self.sources for f in source.body]
        lane = self._lane(self.roots[0].node.lifted)
        terms = (Monomial(prune((*body, *root.assigns), self.keys, (lane,)), (lane,)) for root in self.roots)
        return View(self.name, self.keys, tuple(terms))

    @property
    def views(self) -> tuple[View, ...]:
        """The views that are stored, the root first."""
        roots = {id(root.node) for root in self.roots}
        nodes = [node for root in self.roots for node in _nodes(root.node)]
        inner = {self._signature(n): n for n in nodes if n.is_materialised and id(n) not in roots}
        return (self.root, *map(self._view, inner.values()))

    def statements(self, relation: Relation, deltas: ViewRegistry) -> Iterator[Statement]:
        """Yield what a batch of a relation changes; `deltas` makes the pre-aggregated batch of each leaf."""
        done = set[int]()
        places = {id(leaf): place for place, leaf in enumerate(self.roots[0].node.leaves)}
        for source in sorted(self.sources, key=lambda source: places[id(source.leaf)]):
            if source.atom.relation == relation:
                yield from self._updates(source, deltas, done)
                done.add(id(source.leaf))

    def _updates(self, source: LeafSource, deltas: ViewRegistry, done: set[int]) -> Iterator[Statement]:
        """Yield the updates of one leaf, from it to the roots.

        Static relations are loaded up to where a stream joins them, if there is any.

        Args:
            done: The leaves of the same relation whose updates come before.
        """
        loads = not any(source.leaf.is_stream for source in self.sources)
        made = dict[Signature, Ref]()
        for root in self.roots:
            path = list[view_tree.ViewNode]()
            for node in _path_to(root.node, source.leaf):
                if not source.leaf.is_stream and node.is_stream and not loads:
                    break
                path.append(node)
                if node is root.node:
                    yield self._add_to_root(root, source, path, deltas, made, done)
                    break
                if node.is_virtual:
                    continue
                path, joined = [node], path
                if (signature := self._signature(node)) in made:
                    continue
                if len(joined) == 1:
                    made[signature] = self._leaf_change(source, node, deltas)
                else:
                    refs, lane = self._join(joined, made, done)
                    name = self._change_name(node)
                    yield Statement(name, node.stored_keys, refs, (), (lane,), partial=True)
                    made[signature] = Ref(name, node.stored_keys, (0,))
                if node.is_materialised:
                    yield Statement(self._name(node), node.stored_keys, (made[signature],), (), ((),))

    def _add_to_root(
        self, root: Root, source: LeafSource, path: Sequence[view_tree.ViewNode], deltas: ViewRegistry,
        made: dict[Signature, Ref], done: set[int],
    ) -> Statement:  # fmt: skip
        """Make the statement that adds to the root."""
        refs: tuple[Ref, ...]
        lane: Lane
        if len(path) == 1:
            refs, lane = (self._leaf_change(source, root.node, deltas),), ()
        else:
            refs, lane = self._join(path, made, done)
        return Statement(self.name, self.keys, refs, root.assigns, (lane,))

    def _leaf_change(self, source: LeafSource, node: view_tree.ViewNode, deltas: ViewRegistry) -> Ref:
        """Aggregate a batch of a leaf's relation for the node over it."""
        lanes = (source.computed(self._lane(node.stored_lifts)),)
        body = prune((replace(source.atom, delta=True), *source.rest), node.stored_keys, lanes)
        name, keys, picks = deltas.request(Component(body, node.stored_keys, lanes))
        return Ref(name, keys, picks)

    def _join(
        self, path: Sequence[view_tree.ViewNode], made: dict[Signature, Ref], done: set[int]
    ) -> tuple[tuple[Ref, ...], Lane]:
        """Join the change of the first view of a path with the views beside it, up to the last one.

        What is marginalised is lifted, and raw rows.
        """
        below, *above = path
        beside = [child for one, node in pairwise(path) for child in node.views if child is not one]
        lifts = [*below.unlifted, *(v for node in above for v in node.lifts), *(v for c in beside for v in c.unlifted)]
        reads = (ref for child in beside for ref in self._read(child, done))
        return (made[self._signature(below)], *reads), self._lane(lifts)

    def _read(self, node: view_tree.ViewNode, done: set[int]) -> Iterator[Ref]:
        """Yield the stored views that make a view: itself, or those that it would join."""
        if node.is_virtual:
            for child in node.views:
                yield from self._read(child, done)
            return
        after = any(id(leaf) in done for leaf in node.leaves)
        yield Ref(self._name(node), node.stored_keys, (0,), is_after=after)

    def _view(self, node: view_tree.ViewNode) -> View:
        inside = {id(leaf) for leaf in node.leaves}
        factors = [f for source in self.sources if id(source.leaf) in inside for f in source.body]
        lane = self._lane(node.stored_lifts)
        body = prune(tuple(factors), node.stored_keys, (lane,))
        return View(self._name(node), node.stored_keys, (Monomial(body, (lane,)),))

    def _lane(self, lifts: Sequence[Column]) -> Lane:
        return tuple(lift(v, self.numbers[v], self.degree) for v in sorted(lifts, key=self.numbers.__getitem__))

    def _signature(self, node: view_tree.ViewNode) -> Signature:
        return tuple(v.id for v in node.stored_keys), tuple(id(leaf) for leaf in node.leaves)

    def _change_name(self, node: view_tree.ViewNode) -> str:
        """Name the change of a view on one path; each path has its own, which lives as long as the batch."""
        times = self._changes[self._name(node)] = self._changes.get(self._name(node), 0) + 1
        return f"Δ{self._name(node)}" + ("" if times == 1 else f"′{times}")

    def _name(self, node: view_tree.ViewNode) -> str:
        signature = self._signature(node)
        if signature not in self._names:
            named = {id(s.leaf): s.atom.relation.name.upper() for s in self.sources}
            self._names[signature] = self.free_names.take("_".join(("V", *(named[id(leaf)] for leaf in node.leaves))))
        return self._names[signature]


def _nodes(node: view_tree.ViewNode) -> Iterator[view_tree.ViewNode]:
    yield node
    for child in node.views:
        yield from _nodes(child)


def _path_to(node: view_tree.ViewNode, leaf: Leaf) -> list[view_tree.ViewNode]:
    """List the views from the one over a leaf to the root; none if the leaf is not below."""
    for child in node.children:
        if child is leaf:
            return [node]
        if isinstance(child, view_tree.ViewNode) and (path := _path_to(child, leaf)):
            return [*path, node]
    return []
