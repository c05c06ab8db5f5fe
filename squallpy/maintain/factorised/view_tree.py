"""View trees: a view for each variable of an order that joins its children and marginalises the variable.

For features B, C, D, and relations R[A, B], S[A, C, D] that hang below B and D:

    A ─┬─ B            V@A[] ⟨B, C, D⟩
       └─ C ─ D   →      V@B[A] ⟨B⟩        over R
                         V@C,D[A] ⟨C, D⟩   over S

A view with one child, which joins nothing, is merged with it (§3.4), so that C and D are marginalised at once. Where a
child of a variable does not have the variable, it is not joined there, but above.

Source: `fivm-on-flink` §3.4 and Alg. 1. `getDeps` is the union of the children's keys without the variable.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Union

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.check_order import check_order
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.variable_order import NO_PARENT, VariableOrder


@dataclass(frozen=True, slots=True)
class ViewNode:
    """keys → statistics of the lifted variables below, over the join of the children.

    `lifts` are lifted here: the marginalised features, and features that stay keys because they are free.
    `is_materialised` where others read it, `keeps_rows` if it is stored as rows of keys and lifts with a count;
    `is_virtual` if it is nowhere stored: what would read it joins its children instead.
    """

    keys: tuple[Column, ...]
    marginalised: tuple[Column, ...]
    lifts: tuple[Column, ...]
    children: tuple[Union["ViewNode", Leaf], ...]
    is_materialised: bool = False
    keeps_rows: bool = False
    is_virtual: bool = False

    @property
    def lifted(self) -> tuple[Column, ...]:
        """The lifted variables of the subtree: one range for each child, then its own."""
        below = (child.lifted for child in self.children if isinstance(child, ViewNode))
        return (*chain.from_iterable(below), *self.lifts)

    @property
    def views(self) -> tuple["ViewNode", ...]:
        """The children that are views."""
        return tuple(child for child in self.children if isinstance(child, ViewNode))

    @property
    def unlifted(self) -> tuple[Column, ...]:
        """The variables of `lifted` that are lifted where it is read."""
        if self.is_virtual:
            return (*chain.from_iterable(child.unlifted for child in self.views), *self.lifts)
        return self.lifts if self.keeps_rows else ()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The relations below, from left to right."""
        below = ((child,) if isinstance(child, Leaf) else child.leaves for child in self.children)
        return tuple(chain.from_iterable(below))

    @property
    def is_join(self) -> bool:
        return len(self.children) > 1

    @property
    def is_stream(self) -> bool:
        """True if a stream is below: otherwise it does not change once it is loaded."""
        return any(child.is_stream for child in self.children)

    @property
    def leaf(self) -> Leaf | None:
        """The relation that it is over, if it reads one directly and nothing else."""
        (child, *others) = self.children
        return child if isinstance(child, Leaf) and not others else None

    @property
    def stored_keys(self) -> tuple[Column, ...]:
        """The columns by which it is stored."""
        return self.keys if not self.keeps_rows else (*self.keys, *(v for v in self.lifts if v not in self.keys))

    @property
    def stored_lifts(self) -> tuple[Column, ...]:
        """The lifted variables of its stored payloads; those of rows are lifted when they are read."""
        return () if self.keeps_rows else self.lifted


Part = ViewNode | Leaf


def build_view_tree(graph: JoinGraph, order: VariableOrder, *, compress: bool = True) -> ViewNode:
    """Build the view tree of a query over a variable order; SquallError if the order is none for the query.

    Args:
        compress: Merge views as far as they join nothing; otherwise each variable has a view of its own.
    """
    columns = check_order(order, graph)
    ranks = {column: order.rank(id) for id, column in enumerate(columns) if column}
    builder = _Builder(ranks, {v: i for i, v in enumerate(graph.features)}, frozenset(graph.free), compress)
    leaves = {leaf.name.lower(): leaf for leaf in graph.leaves}
    parts: list[list[Part]] = [[] for _ in (*order.variables, NO_PARENT)]
    for relation in order.relations:
        parts[order.lowest(relation)].append(leaves[relation.name.lower()])
    for id in reversed(order.preorder):
        column, above = columns[id], parts[order.variables[id].parent]
        inside = [part for part in parts[id] if column in _keys(part)]
        made = [builder.eliminate(column, inside)] if column else []
        above[:0] = [*made, *(part for part in parts[id] if part not in inside)]
    match parts[NO_PARENT]:
        case [ViewNode() as root]:
            pass
        case tops:
            root = ViewNode(graph.free, (), (), builder.children(tops))
    return replace(root, keys=graph.free, is_materialised=True)


@dataclass(frozen=True, slots=True)
class _Builder:
    """Makes the views of one tree: keys by their ranks, from the root downwards, lifts by their positions in SELECT."""

    ranks: Mapping[Column, int]
    features: Mapping[Column, int]
    free: frozenset[Column]
    compress: bool

    def eliminate(self, variable: Column, parts: Sequence[Part]) -> ViewNode:
        """Join the parts that have a variable, and marginalise it unless it is free."""
        bound = (variable,) if variable not in self.free else ()
        lifts = (variable,) if variable in self.features else ()
        keys = self._sorted(chain.from_iterable(map(_keys, parts)), without=bound)
        match parts:
            case [ViewNode() as below] if not (bound or lifts) or (self.compress and not below.is_join):
                marginalised = self._sorted((*below.marginalised, *bound))
                together = tuple(sorted((*below.lifts, *lifts), key=self.features.__getitem__))
                return ViewNode(keys, marginalised, together, below.children)
        return ViewNode(keys, bound, lifts, self.children(parts))

    def children(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Give relations that are joined views of their own, and tell which are materialised.

        A view is read when the rest of the join changes, or while static tables are loaded if all of them are static.
        """
        if len(parts) == 1:
            return tuple(parts)
        views = [ViewNode(self._sorted(p.variables), (), (), (p,)) if isinstance(p, Leaf) else p for p in parts]
        streams = sum(view.is_stream for view in views)
        return tuple(replace(v, is_materialised=streams == 0 or streams > v.is_stream) for v in views)

    def _sorted(self, variables: Iterable[Column], without: tuple[Column, ...] = ()) -> tuple[Column, ...]:
        return tuple(sorted(set(variables).difference(without), key=self.ranks.__getitem__))


def _keys(part: Part) -> tuple[Column, ...]:
    return part.keys if isinstance(part, ViewNode) else part.variables
