"""Models of joins: from an auxiliary relation of a model's rows to the view trees that maintain its view.

cofactor(x, y)             one tree, whose root has the cofactor matrix of x and y
mutual_information(x, y)   a tree for each pair of columns, whose root counts the pairs of their values
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from squallpy.base.errors import SquallError
from squallpy.base.free_names import FreeNames
from squallpy.base.records import dataclass
from squallpy.base.types import INT, VARCHAR
from squallpy.functions.model_functions import degree_of
from squallpy.logical.expressions import Cast, Column, Expr, Literal
from squallpy.maintain.factorised import view_tree
from squallpy.maintain.factorised.cardinalities import Cardinalities
from squallpy.maintain.factorised.compile_view_tree import FactorisedView, Root
from squallpy.maintain.factorised.derive_order import derive_order
from squallpy.maintain.factorised.doubles_in_rows import store_doubles
from squallpy.maintain.factorised.explain_text import viewtree_text
from squallpy.maintain.factorised.join_graph import JoinGraph
from squallpy.maintain.factorised.leaf_sources import LeafSource, sources_of
from squallpy.maintain.factorised.order_text import read_order
from squallpy.maintain.factorised.stop_push_down import stop_push_down
from squallpy.maintain.factorised.variable_order import VariableOrder
from squallpy.maintain.factorised.view_tree import build_view_tree
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Assign


@dataclass(frozen=True, slots=True)
class ModelTree:
    """The view tree of a model's join, with the leaves and the order that it is built of."""

    sources: tuple[LeafSource, ...]
    graph: JoinGraph
    root: view_tree.ViewNode
    order: VariableOrder
    degree: int
    has_pairs: bool = False

    @property
    def trees_of_pairs(self) -> tuple[tuple[Column, Column, view_tree.ViewNode], ...]:
        """A tree for each pair of features that counts these: they stay keys up to its root."""
        leaves, free = self.graph.leaves, self.graph.free
        graphs = ((x, y, tuple(dict.fromkeys((*free, x, y)))) for x, y in combinations(self.graph.features, 2))
        return tuple((x, y, build_view_tree(JoinGraph(leaves, (), keys), self.order)) for x, y, keys in graphs)

    def text(self, compensated: bool) -> str:
        """Show order and trees as EXPLAIN does; sums may be compensated."""
        trees, names = [("VIEW TREE", self.root)], self.graph.names()
        if self.has_pairs:
            trees = [(f"VIEW TREE of {names[x]} and {names[y]}", root) for x, y, root in self.trees_of_pairs]
        return viewtree_text(self.graph, self.order, trees, self.degree, compensated)


def model_tree(aux: AuxiliaryRelation) -> ModelTree:
    """Build the view tree of a model's join, over its declared variable order or a derived one.

    Raises SquallError for an order that is none for the query.
    """
    assert isinstance(aux.kind, ModelRows)
    (sources, graph), degree = sources_of(aux.view, aux.kind.aliases), degree_of(aux.kind.model)
    declared = aux.kind.order
    body = declared.body if declared else None
    order = read_order(body.script, body.start, body.end) if body else derive_order(graph)
    try:
        root = stop_push_down(build_view_tree(graph, order), _cardinalities(aux.kind, sources, graph), degree)
    except SquallError as error:
        raise (error.at(declared.span) if declared else error) from None
    if not aux.kind.pair:  # NB: whose features are keys
        sources, graph, root = store_doubles(sources, graph, root)
    return ModelTree(sources, graph, root, order, degree, bool(aux.kind.pair))


def _cardinalities(kind: ModelRows, sources: Sequence[LeafSource], graph: JoinGraph) -> Cardinalities | None:
    """Estimate the views of a model's join, if the rows of its relations are declared, or all that come are known."""
    relations, sizes = {source.leaf.name: source.atom.relation for source in sources}, dict(kind.sizes)
    rows = {name: each.expected_rows or sizes.get(each.name, 0) for name, each in relations.items()}
    is_counted = {name: bool(each.expected_rows) or each.name in kind.present for name, each in relations.items()}
    changing = {name for name, each in relations.items() if each.has_deletes and not is_counted[name]}
    return Cardinalities(graph, rows, changing) if all(rows.values()) else None


def maintain_model(aux: AuxiliaryRelation, free_names: FreeNames) -> tuple[AuxiliaryRelation, FactorisedView]:
    """Build what maintains a model's view by view trees; its variables are numbered as there.

    Args:
        free_names: The names of the program's views, of which it takes its own.
    """
    assert isinstance(aux.kind, ModelRows)
    tree = model_tree(aux)
    view = _count_pairs(aux, aux.kind, tree, free_names) if aux.kind.pair else _sum_products(aux, tree, free_names)
    places = tuple(view.numbers.get(v, 0) for v in tree.graph.features)
    return replace(aux, view=view.root, kind=replace(aux.kind, variables=places, sizes=(), present=())), view


def _sum_products(aux: AuxiliaryRelation, tree: ModelTree, free_names: FreeNames) -> FactorisedView:
    numbers = {v: number for number, v in enumerate(tree.root.lifted)}
    roots = (Root(tree.root),)
    return FactorisedView(roots, tree.sources, aux.view.name, aux.view.keys, numbers, free_names, tree.degree)


def _count_pairs(aux: AuxiliaryRelation, kind: ModelRows, tree: ModelTree, free_names: FreeNames) -> FactorisedView:
    """Count the values of each pair of features."""
    pair, a, b = kind.pair
    roots = []
    for number, (x, y, root) in enumerate(tree.trees_of_pairs):
        values = (Assign(v, _as_text(value)) for v, value in ((a, x), (b, y)))
        roots.append(Root(root, (Assign(pair, Literal(number, INT)), *values)))
    return FactorisedView(tuple(roots), tree.sources, aux.view.name, (*aux.view.keys, *kind.pair), {}, free_names)


def _as_text(value: Column) -> Expr:
    """Make a value one of a type that all pairs have."""
    return value if value.type == VARCHAR else Cast(value, VARCHAR)
