"""Aggregates, repeats and windows below a join → auxiliary relations, which the query reads by name."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from squallpy.base.free_names import distinct_names
from squallpy.base.types import INT, VARCHAR
from squallpy.catalog.relation import Field, Relation
from squallpy.functions.model_functions import CATEGORICAL
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expressions import Column, Expr, column_of, substitute
from squallpy.logical.factorised import Factorised
from squallpy.logical.first_rows import FirstRows
from squallpy.logical.nodes import Aggregate, Node, Repeat, Scan, Window
from squallpy.logical.plan_interning import PlanInterner
from squallpy.logical.recursion import Recursion
from squallpy.logical.session_windows import SessionBounds
from squallpy.maintain.lowering.block import SpjBlock
from squallpy.maintain.lowering.recursion import derive_rules, union_of_leaves
from squallpy.maintain.lowering.views import factorised_view, group_view
from squallpy.program.auxiliary.first_rows import FirstRowsOfGroups
from squallpy.program.auxiliary.fixpoint import Fixpoint, Leaf
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.relation import AnyAuxiliaryKind, AuxiliaryRelation, auxiliary_name
from squallpy.program.auxiliary.session_rows import SessionRows
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.program.output_spec import Measure, OutputSpec
from squallpy.program.views import View

Expand = Callable[[Node], list[SpjBlock]]


class AuxiliaryRelations:
    """The auxiliary relations of a query, innermost first; plans that are equal up to names share one."""

    def __init__(self, ids: Iterator[int], names: Mapping[str, Relation], expand: Expand, iterations: int) -> None:
        """Begin without any.

        Args:
            names: The relations whose names are taken.
            expand: Lowers the input of an operator to blocks.
            iterations: The most that a recursive query may take.
        """
        self._iterations = iterations
        self.relations: list[AuxiliaryRelation] = []
        self.ids, self._names, self._expand = ids, names, expand
        self._interner = PlanInterner()
        self._known: dict[int, AuxiliaryRelation] = {}  # by its canonical spelling

    def of_groups(self, node: Aggregate | Repeat) -> Scan:
        """Scan the auxiliary relation of an Aggregate's groups; equal ones are shared."""
        aux = self._find(node, lambda: self._groups(node))
        named = (replace(c, name=f.name) for c, f in zip(node.output, aux.relation.fields, strict=True))
        return Scan(aux.relation, aux.relation.name, tuple(named))

    def of_window(self, node: Window) -> Scan:
        """Scan the auxiliary relation of the rows in a window; equal ones are shared."""
        return self._scan(self._find(node, lambda: self._window(node)), node)

    def of_sessions(self, node: SessionBounds) -> Scan:
        """Scan the auxiliary relation of the sessions of some times; equal ones are shared."""
        return self._scan(self._find(node, lambda: self._sessions(node)), node)

    def of_first_rows(self, node: FirstRows) -> Scan:
        """Scan the auxiliary relation of the first rows of groups; equal ones are shared."""
        return self._scan(self._find(node, lambda: self._first_rows(node)), node)

    def of_factorised(self, node: Factorised) -> Scan:
        """Scan the auxiliary relation of a model's rows; equal ones are shared."""
        return self._scan(self._find(node, lambda: self._factorised(node)), node)

    def of_recursion(self, node: Recursion) -> Scan:
        """Scan the auxiliary relation of the rows of recursive queries; equal ones are shared."""
        return self._scan(self._find(node, lambda: self._recursion(node)), node)

    def _find(self, node: Node, make: Callable[[], AuxiliaryRelation]) -> AuxiliaryRelation:
        """Find the auxiliary relation of a node, which is made the first time."""
        spelled = self._interner.number(node)
        if spelled not in self._known:
            self._known[spelled] = aux = make()
            self.relations.append(aux)
        return self._known[spelled]

    def _scan(self, aux: AuxiliaryRelation, node: Node) -> Scan:
        return Scan(aux.relation, aux.relation.name, tuple(replace(c, id=next(self.ids)) for c in node.output))

    def _groups(self, of: Aggregate | Repeat) -> AuxiliaryRelation:
        node, times, number = (of.child, of.times, of.number) if isinstance(of, Repeat) else (of, None, None)
        over: Column | None = None
        if any(agg.extreme for _, agg in node.aggs):
            arg, beside = node.aggs[0][1].arg, {e: self._column(e) for e in node.aggs[0][1].args}
            keys = (*node.keys, *((column, e) for e, column in beside.items()))
            view, printed, _ = self._view(replace(node, keys=keys, aggs=()))
            found = {e: v for e, column in beside.items() if isinstance(v := printed.pop(column.id), Column)}
            over = found[arg] if arg else None
            measures = tuple(value_measure(column, agg, found) for column, agg in node.aggs)
        else:
            view, printed, measures = self._view(node)
        titles = distinct_names([_word(column.name) for column in of.output])
        items = tuple((t, printed.get(c.id, c)) for t, c in zip(titles, of.output, strict=True))
        times = times and substitute(times, printed)
        output = OutputSpec(
            measures, None, items, (), None, 0, False, single=not node.keys, aggregated_key=over, times=times,
            number=number,
        )  # fmt: skip
        key = (*titles[: len(node.keys)], *(titles[-1:] if number is not None else ()))
        return self._auxiliary("G", of.output, key, view, output, Groups())

    def _window(self, node: Window) -> AuxiliaryRelation:
        keys = tuple((self._column(c), c) for c in node.output)
        view, printed, _ = self._view(Aggregate(node.child, keys, ()))
        titles = distinct_names([c.name for c in node.output])
        items = tuple((t, printed[c.id]) for t, (c, _) in zip(titles, keys, strict=True))
        output = OutputSpec((), None, items, (), None, 0, repeat=True, single=False)
        kind = WindowRows(replace(node.spec, field=titles[node.output.index(node.time)]))
        return self._auxiliary("W", node.output, (), view, output, kind)

    def _sessions(self, node: SessionBounds) -> AuxiliaryRelation:
        view, printed, _ = self._view(node.child)
        keys = [printed[column.id] for column in node.child.output]
        titles = distinct_names([column.name for column in node.output])
        items = tuple(zip(titles, (*keys, node.following, node.last), strict=True))
        output = OutputSpec((), None, items, (), None, 0, repeat=False, single=False)
        time = keys[-1]
        assert isinstance(time, Column)
        kind = SessionRows(time, node.following, node.last, node.gap)
        return self._auxiliary("G", node.output, tuple(titles[: len(keys)]), view, output, kind)

    def _first_rows(self, node: FirstRows) -> AuxiliaryRelation:
        view, printed, _ = self._view(node.child)
        keys = {column.id: printed[column.id] for column in node.child.output}
        titles = distinct_names([_word(column.name) for column in node.output])
        items = tuple(zip(titles, (*keys.values(), node.number), strict=True))
        output = OutputSpec((), None, items, (), None, 0, repeat=False, single=False)
        # NB: columns that conditions make equal are one key of the view, constant ones are none
        held = {id: key for id, key in keys.items() if isinstance(key, Column)}
        group = tuple(dict.fromkeys(held[c.id] for c in node.group if c.id in held))
        others = tuple(dict.fromkeys(key for key in held.values() if key not in group))
        ways = {held[c.id]: (down, nulls_first) for c, down, nulls_first in reversed(node.order) if c.id in held}
        firsts = dict.fromkeys(held[c.id] for c, _, _ in node.order if c.id in held)
        order = tuple((key, *ways[key]) for key in firsts if key in others)
        kind = FirstRowsOfGroups(group, order, others, node.count, node.number)
        key = (*titles[: node.grouping], titles[-1])
        return self._auxiliary("G", node.output, key, view, output, kind)

    def _factorised(self, node: Factorised) -> AuxiliaryRelation:
        (block,) = self._expand(node.child)
        view, printed, features = factorised_view("", node, block, self.ids)
        titles = distinct_names([column.name for column in node.output])
        items = tuple((t, printed.get(c.id, c)) for t, c in zip(titles, node.output, strict=True))
        output = OutputSpec((), None, items, (), None, 0, repeat=False, single=False)
        aliases = tuple(scan.alias for scan in block.scans)
        kind = ModelRows(node.model, node.names, tuple(range(len(features))), aliases, node.order)
        if isinstance(node.model, CATEGORICAL):
            a, b = (Column(next(self.ids), name, VARCHAR, False) for name in ("a", "b"))
            kind = replace(kind, pair=(Column(next(self.ids), "pair", INT, False), a, b))
        key = tuple(titles[: len(node.keys) + node.model.keys])
        return self._auxiliary("V", node.output, key, view, output, kind)

    def _recursion(self, node: Recursion) -> AuxiliaryRelation:
        found = derive_rules(node, self._expand, self.ids)
        union, slots = union_of_leaves(found.leaves, self.ids)
        view, printed, _ = self._view(Aggregate(union, tuple((c, c) for c in union.output), ()))
        keys = {id: key for id, key in printed.items() if isinstance(key, Column)}
        leaves = tuple(
            Leaf(name, tuple(keys[slot.id] for slot in mine))
            for (name, _), mine in zip(found.leaves, slots, strict=True)
        )
        titles = distinct_names([column.name for column in node.output])
        items = tuple(zip(titles, node.output, strict=True))
        output = OutputSpec((), None, items, (), None, 0, repeat=True, single=False)
        number = keys[union.columns[0].id]
        kind = Fixpoint(node.tables, leaves, tuple(found.rules), number, self._iterations, node.span)
        return self._auxiliary("F", node.output, (), view, output, kind)

    def _auxiliary(
        self,
        prefix: str,
        columns: tuple[Column, ...],
        key: tuple[str, ...],
        view: View,
        output: OutputSpec,
        kind: AnyAuxiliaryKind,
    ) -> AuxiliaryRelation:
        """Make an auxiliary relation with a field for each column; `prefix` begins the name of its view."""
        name = auxiliary_name({*self._names, *(n.relation.name for n in self.relations)})
        fields = tuple(Field(t, c.type, c.nullable) for (t, _), c in zip(output.items, columns, strict=True))
        relation = Relation(name, fields, any(atom.relation.stream for atom in view.atoms), "view", primary_key=key)
        return AuxiliaryRelation(relation, replace(view, name=f"{prefix}_{name.upper()}"), output, kind)

    def _view(self, node: Aggregate) -> tuple[View, dict[int, Expr], tuple[Measure, ...]]:
        return group_view("", node, self._expand(node.child), self.ids)

    def _column(self, of: Expr) -> Column:
        return column_of(of, next(self.ids))


def value_measure(column: Column, agg: Agg, keys: Mapping[Expr, Column]) -> Measure:
    """Make the measure of an aggregate over a group's values, listed in the order of `keys`."""
    ways = tuple((keys[expr], down, nulls) for expr, down, nulls in agg.order)
    return Measure(agg.function, column, (), (), fraction=agg.fraction, separator=agg.separator, order=ways)


def _word(name: str) -> str:
    """Make a field's name of an expression: SUM(l_quantity) → sum_l_quantity"""
    return re.sub(r"\W+", "_", name).strip("_").lower() or "x"
