"""View trees → views and statements of the trigger program: an update goes from a leaf to the root.

    V()  ⟨x, y⟩                  ΔV_R(k)⟨x⟩  :=  Sum_[k](ΔR(k, x))
    ├─ V_R(k) ⟨x⟩  over R   →    V_R(k)      +=  ΔV_R(k)
    └─ V_S(k) ⟨y⟩  over S        V()         +=  Sum_[](ΔV_R(k) ⋈ V_S(k))

Only the views on the path change; those beside it are read. Where a relation is there more than once, its leaves take
turns, from left to right: each path reads the views to its left after the batch, and those to its right before it.

Source: `fivm-on-flink` §3.5 and Alg. 2.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised import view_tree
from squallpy.maintain.factorised.derive_order import derive_order
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.order_text import read_order
from squallpy.maintain.factorised.show import viewtree_text
from squallpy.maintain.factorised.variable_order import VariableOrder
from squallpy.maintain.factorised.view_tree import build_view_tree
from squallpy.maintain.relational.view_registry import Registry
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign, Cmp, Factor, Lane, Rel, lift, lifted, variables
from squallpy.program.components import Component, bound_by, prune
from squallpy.program.trigger_program import Statement
from squallpy.program.views import Monomial, Ref, View


@dataclass(frozen=True, slots=True)
class Source:
    """A leaf of a view tree with its atom, and the assignments and predicates of this atom alone."""

    leaf: Leaf
    atom: Rel
    rest: tuple[Factor, ...]

    @property
    def body(self) -> tuple[Factor, ...]:
        return (self.atom, *self.rest)


@dataclass(slots=True)
class FactorisedView:
    """A view of a join, maintained by a view tree."""

    tree: view_tree.View
    sources: tuple[Source, ...]
    name: str
    numbers: dict[Column, int]
    """Numbers of the lifted variables in the cofactor ring."""
    _names: dict[int, str] = field(default_factory=dict)
    _changes: dict[str, int] = field(default_factory=dict)

    @property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(dict.fromkeys(source.atom.relation for source in self.sources))

    @property
    def views(self) -> tuple[View, ...]:
        """The views that are stored, the root first."""
        return tuple(self._view(node) for node in _nodes(self.tree) if node.is_materialised)

    def statements(self, relation: Relation, deltas: Registry) -> Iterator[Statement]:
        """Yield what a batch of a relation changes; `deltas` makes the pre-aggregated batch of each leaf."""
        done = set[int]()
        loads = not any(source.leaf.is_stream for source in self.sources)
        for source in self.sources:
            if source.atom.relation == relation:
                yield from self._path(source, deltas, done, loads)
                done.add(id(source.leaf))

    def _path(self, source: Source, deltas: Registry, done: set[int], loads: bool) -> Iterator[Statement]:
        """Yield the statements of one leaf's update, from it to the root.

        Args:
            done: The leaves of the same relation whose paths are done.
            loads: All relations are static; otherwise static ones are loaded up to where a stream joins them.
        """
        path = _path_to(self.tree, source.leaf)
        change: Ref | None = None
        for below, node in zip((None, *path), path, strict=False):
            if not source.leaf.is_stream and node.is_stream and not loads:
                return
            if below is None:
                atom = replace(source.atom, delta=True)
                lanes = (self._lane(node.stored_lifts),)
                body = prune((atom, *source.rest), node.stored_keys, lanes)
                name, keys, picks = deltas.request(Component(body, node.stored_keys, lanes))
                change = Ref(name, keys, picks)
            else:
                assert change is not None
                beside = [child for child in node.children if child is not below]
                reads = tuple(self._read(child, done) for child in beside if isinstance(child, view_tree.View))
                raw = [v for child in node.children if isinstance(child, view_tree.View) and child.keeps_rows
                       for v in child.lifts]  # fmt: skip
                lanes = (self._lane((*node.lifts, *raw)),)
                is_root = node is self.tree
                target = self.name if is_root else self._change_name(node)
                yield Statement(target, node.stored_keys, (change, *reads), (), lanes, partial=not is_root)
                if is_root:
                    return
                change = Ref(target, node.stored_keys, (0,), after=True)
            if node.is_materialised:
                yield Statement(self._name(node), node.stored_keys, (change,), (), ((),))

    def _change_name(self, node: view_tree.View) -> str:
        """Name the change of a view on one path; each path has its own, which lives as long as the batch."""
        times = self._changes[self._name(node)] = self._changes.get(self._name(node), 0) + 1
        return f"Δ{self._name(node)}" + ("" if times == 1 else f"′{times}")

    def _read(self, node: view_tree.View, done: set[int]) -> Ref:
        after = any(id(leaf) in done for leaf in _leaves(node))
        return Ref(self._name(node), node.stored_keys, (0,), after=after)

    def _view(self, node: view_tree.View) -> View:
        inside = {id(leaf) for leaf in _leaves(node)}
        factors = [f for source in self.sources if id(source.leaf) in inside for f in source.body]
        lane = self._lane(node.stored_lifts)
        body = prune(tuple(factors), node.stored_keys, (lane,))
        return View(self._name(node), node.stored_keys, (Monomial(body, (lane,)),))

    def _lane(self, lifts: tuple[Column, ...]) -> Lane:
        return tuple(lift(v, self.numbers[v]) for v in sorted(lifts, key=self.numbers.__getitem__))

    def _name(self, node: view_tree.View) -> str:
        if node is self.tree:
            return self.name
        if id(node) not in self._names:
            named = {id(s.leaf): s.atom.relation.name.upper() for s in self.sources}
            base = "_".join(("V", *(named[id(leaf)] for leaf in _leaves(node))))
            taken = {self.name, *self._names.values()}
            names = (base, *(f"{base}_{i}" for i in range(2, len(taken) + 3)))
            self._names[id(node)] = next(name for name in names if name not in taken)
        return self._names[id(node)]


@dataclass(frozen=True, slots=True)
class ModelTree:
    """The view tree of a model's join, with the leaves and the order that it is built of."""

    sources: tuple[Source, ...]
    graph: JoinGraph
    order: VariableOrder
    root: view_tree.View

    @property
    def text(self) -> str:
        """Order and tree, as EXPLAIN shows them."""
        return viewtree_text(self.graph, self.order, self.root)


def model_tree(aux: AuxiliaryRelation) -> ModelTree:
    """Build the view tree of a model's join, over its declared variable order or a derived one.

    Raises SquallError for an order that is none for the query.
    """
    assert isinstance(aux.kind, ModelRows)
    sources, graph = _sources(aux.view, aux.kind.aliases)
    order = derive_order(graph)
    if aux.kind.order is not None:
        body = aux.kind.order.body
        order = read_order(body.script, body.start, body.end)
    return ModelTree(sources, graph, order, build_view_tree(graph, order))


def maintain_model(aux: AuxiliaryRelation) -> tuple[AuxiliaryRelation, FactorisedView]:
    """Maintain a model by its view tree; its variables are numbered as there."""
    assert isinstance(aux.kind, ModelRows)
    tree = model_tree(aux)
    numbers = {v: number for number, v in enumerate(tree.root.lifted)}
    view = FactorisedView(tree.root, tree.sources, aux.view.name, numbers)
    kind = replace(aux.kind, variables=tuple(numbers[v] for v in tree.graph.features))
    return replace(aux, view=view.views[0], kind=kind), view


def _sources(view: View, aliases: tuple[str, ...]) -> tuple[tuple[Source, ...], JoinGraph]:
    (term,) = view.terms
    (lane,) = term.lanes
    features = tuple(v for factor in lane or () if (value := lifted(factor)) and isinstance(v := value[0], Column))
    rest = [f for f in term.body if not isinstance(f, Rel)]
    sources, taken = list[Source](), set[int]()
    for number, atom in enumerate(term.atoms, 1):
        bound, own = bound_by((atom,)), list[Assign | Cmp]()
        while found := [f for f in rest if id(f) not in taken and _reads(f) <= bound]:
            own += found
            taken |= {id(f) for f in found}
            bound |= bound_by(found)
        wanted = {v for v in bound if v in features or v in view.keys or _is_shared(v, atom, term.atoms, rest, own)}
        kept = tuple(v for v in (*(v for _, v in atom.fields), *sorted(bound, key=lambda v: v.id)) if v in wanted)
        columns = {v: name for name, v in reversed(atom.fields)}
        leaf_variables = tuple(dict.fromkeys(kept))
        unread = tuple(f.name for f in atom.relation.fields if f.name not in {columns.get(v) for v in leaf_variables})
        names = tuple(columns.get(v, v.name) for v in leaf_variables)
        name = aliases[number - 1] if len(aliases) == len(term.atoms) else f"{atom.relation.name}_{number}"
        leaf = Leaf(name, leaf_variables, atom.relation.stream, columns=names, unread=unread)
        sources.append(Source(leaf, atom, tuple(own)))
    assert len(taken) == len(rest), f"{[f for f in rest if id(f) not in taken]} read several relations"
    return tuple(sources), JoinGraph(tuple(source.leaf for source in sources), features, view.keys)


def _is_shared(v: Column, atom: Rel, atoms: tuple[Rel, ...], rest: Sequence[Factor], own: Sequence[Factor]) -> bool:
    """True if another atom, or what belongs to it, has a variable."""
    others = any(v in a.reads for a in atoms if a is not atom)
    return others or any(v in variables(f) for f in rest if all(f is not mine for mine in own))


def _reads(factor: Factor) -> frozenset[Column]:
    return variables(factor) - ({factor.variable} if isinstance(factor, Assign) else frozenset())


def _nodes(node: view_tree.View) -> Iterator[view_tree.View]:
    yield node
    for child in node.children:
        if isinstance(child, view_tree.View):
            yield from _nodes(child)


def _leaves(node: view_tree.View) -> Iterator[Leaf]:
    for child in node.children:
        if isinstance(child, Leaf):
            yield child
        else:
            yield from _leaves(child)


def _path_to(node: view_tree.View, leaf: Leaf) -> list[view_tree.View]:
    """List the views from the one over a leaf to the root; none if the leaf is not below."""
    for child in node.children:
        if child is leaf:
            return [node]
        if isinstance(child, view_tree.View) and (path := _path_to(child, leaf)):
            return [*path, node]
    return []
