"""Aggregates, repeats and windows below a join → auxiliary relations, which the query reads by name."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, count

from squallpy.base.types import INT, VARCHAR
from squallpy.catalog.relation import Field, Relation
from squallpy.functions.factorised import is_categorical
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expressions import Column, Expr, column_of, substitute
from squallpy.logical.factorised import Factorised
from squallpy.logical.nodes import Aggregate, Node, Repeat, Scan, Window
from squallpy.logical.plan_interning import PlanInterner
from squallpy.maintain.lowering.block import SpjBlock
from squallpy.maintain.lowering.views import factorised_view, group_view
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation, auxiliary_name
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.program.output_spec import Measure, OutputSpec
from squallpy.program.views import View

Expand = Callable[[Node], list[SpjBlock]]


class AuxiliaryRelations:
    """The auxiliary relations of a query, innermost first; plans that are equal up to names share one."""

    def __init__(self, ids: Iterator[int], names: Mapping[str, Relation], expand: Expand) -> None:
        """Begin without any.

        Args:
            names: The relations whose names are taken.
            expand: Lowers the input of an operator to blocks.
        """
        self.relations: list[AuxiliaryRelation] = []
        self.ids, self._names, self._expand = ids, names, expand
        self._interner = PlanInterner()
        self._known: dict[int, AuxiliaryRelation] = {}  # by its canonical spelling

    def of_groups(self, node: Aggregate | Repeat) -> Scan:
        """Scan the auxiliary relation of an Aggregate's groups; equal ones are shared."""
        spelled = self._interner.number(node)
        columns, number = node.output, node.number if isinstance(node, Repeat) else None
        node, times = (node.child, node.times) if isinstance(node, Repeat) else (node, None)
        aux = self._known.get(spelled)
        if aux is None:
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
            taken = {*self._names, *(n.relation.name for n in self.relations)}
            name = auxiliary_name(taken)
            titles = distinct_names([_word(column.name) for column in columns])
            fields = tuple(Field(t, c.type, c.nullable) for t, c in zip(titles, columns, strict=True))
            stream = any(atom.relation.stream for atom in view.atoms)
            items = tuple((t, printed.get(c.id, c)) for t, c in zip(titles, columns, strict=True))
            times = times and substitute(times, printed)
            output = OutputSpec(
                measures,
                None,
                items,
                (),
                None,
                0,
                False,
                single=not node.keys,
                aggregated_key=over,
                times=times,
                number=number,
            )
            last = titles[-1:] if number is not None else []
            relation = Relation(name, fields, stream, "view", primary_key=(*titles[: len(node.keys)], *last))
            aux = AuxiliaryRelation(relation, replace(view, name=f"G_{name.upper()}"), output, Groups())
            self.relations.append(aux)
            self._known[spelled] = aux
        named = (replace(c, name=f.name) for c, f in zip(columns, aux.relation.fields, strict=True))
        return Scan(aux.relation, aux.relation.name, tuple(named))

    def of_window(self, node: Window) -> Scan:
        """Scan the auxiliary relation of the rows in a window; equal ones are shared."""
        spelled = self._interner.number(node)
        aux = self._known.get(spelled)
        if aux is None:
            keys = tuple((self._column(c), c) for c in node.output)
            view, printed, _ = self._view(Aggregate(node.child, keys, ()))
            name = auxiliary_name({*self._names, *(n.relation.name for n in self.relations)})
            titles = distinct_names([c.name for c in node.output])
            fields = tuple(Field(t, c.type, c.nullable) for t, c in zip(titles, node.output, strict=True))
            items = tuple((t, printed[c.id]) for t, (c, _) in zip(titles, keys, strict=True))
            output = OutputSpec((), None, items, (), None, 0, repeat=True, single=False)
            time = next(t for t, c in zip(titles, node.output, strict=True) if c == node.time)
            relation = Relation(name, fields, True, "view")
            view = replace(view, name=f"W_{name.upper()}")
            aux = AuxiliaryRelation(relation, view, output, WindowRows(replace(node.spec, field=time)))
            self.relations.append(aux)
            self._known[spelled] = aux
        return Scan(aux.relation, aux.relation.name, tuple(replace(c, id=next(self.ids)) for c in node.output))

    def of_factorised(self, node: Factorised) -> Scan:
        """Scan the auxiliary relation of a model's rows; equal ones are shared."""
        spelled = self._interner.number(node)
        aux = self._known.get(spelled)
        if aux is None:
            (block,) = self._expand(node.child)
            view, printed, features = factorised_view("", node, block, self.ids)
            name = auxiliary_name({*self._names, *(n.relation.name for n in self.relations)})
            titles = distinct_names([column.name for column in node.output])
            fields = tuple(Field(t, c.type, c.nullable) for t, c in zip(titles, node.output, strict=True))
            items = tuple((t, printed.get(c.id, c)) for t, c in zip(titles, node.output, strict=True))
            output = OutputSpec((), None, items, (), None, 0, repeat=False, single=False)
            stream = any(atom.relation.stream for atom in view.atoms)
            aliases = tuple(scan.alias for scan in block.scans)
            titled = tuple(c.name for c in node.features)
            kind = ModelRows(node.model, titled, tuple(range(len(features))), aliases, node.order)
            if is_categorical(node.model):
                a, b = (Column(next(self.ids), name, VARCHAR, False) for name in ("a", "b"))
                kind = replace(kind, pair=(Column(next(self.ids), "pair", INT, False), a, b))
            key = titles[: len(node.keys) + node.model.keys]
            relation = Relation(name, fields, stream, "view", primary_key=tuple(key))
            aux = AuxiliaryRelation(relation, replace(view, name=f"V_{name.upper()}"), output, kind)
            self.relations.append(aux)
            self._known[spelled] = aux
        return Scan(aux.relation, aux.relation.name, tuple(replace(c, id=next(self.ids)) for c in node.output))

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


def distinct_names(names: Iterable[str]) -> list[str]:
    """Number repeated names: a, b, A → a, b, A_2"""
    taken: set[str] = set()
    out = []
    for name in names:
        free = next(n for n in chain((name,), (f"{name}_{i}" for i in count(2))) if n.lower() not in taken)
        taken.add(free.lower())
        out.append(free)
    return out
