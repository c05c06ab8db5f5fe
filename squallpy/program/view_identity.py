"""Identities of views: two views whose statements are the same, whatever they are called, hold the same rows.

    M_R(a) += Sum_[a](ΔR(a, b) ⋈ ⟨1, b⟩)   =   M_R_2(x) += Sum_[x](ΔR(x, y) ⋈ ⟨1, y⟩)

A view of several lanes has an identity for each, since queries that are added ask known views for further lanes. By
these a program that replaces another finds the views that it need not fill.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column, Expr, substitute
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Lane, rename_factor, variables
from squallpy.program.components import prune
from squallpy.program.trigger_program import Statement, TriggerProgram
from squallpy.program.views import Ref, View, rename_ref


@dataclass(frozen=True, slots=True)
class Held:
    """The view of another program that holds a view's rows, and which of its lanes are those of the view."""

    view: str
    lanes: tuple[int, ...]


def held_views(ours: "ViewIdentities", before: "ViewIdentities") -> dict[str, Held]:
    """Find the views of a program whose rows a view of the one before holds, under the same keys in the same order.

    Where several views hold the same rows, each serves one first: that of its name, if there is one.
    """
    known = defaultdict[str, list[tuple[str, int]]](list)
    for view in before.program.views:
        for lane, identity in enumerate(before.view(view.name)):
            known[identity].append((view.name, lane))
    holders = dict[str, dict[str, tuple[int, ...]]]()
    for view in ours.program.views:
        lanes = [dict(known[identity]) for identity in ours.view(view.name)]
        names = (name for name in lanes[0] if all(name in each for each in lanes))
        holders[view.name] = {name: tuple(each[name] for each in lanes) for name in names}
    taken = {name for name, theirs in holders.items() if name in theirs}
    found = dict[str, Held]()
    for name, theirs in holders.items():
        if theirs:
            chosen = (
                name if name in theirs else next((each for each in theirs if each not in taken), next(iter(theirs)))
            )
            taken.add(chosen)
            found[name] = Held(chosen, theirs[chosen])
    return found


def held_auxiliary(ours: "ViewIdentities", before: "ViewIdentities") -> dict[str, str]:
    """Find the auxiliary relations of a program whose rows are those of one of the program before, by name."""
    known = {before.auxiliary(aux.relation.name): aux.relation.name for aux in before.program.auxiliary}
    names = (aux.relation.name for aux in ours.program.auxiliary)
    return {name: known[identity] for name in names if (identity := ours.auxiliary(name)) in known}


class ViewIdentities:
    """The identities of the views and auxiliary relations of a program, each computed when it is first asked for."""

    def __init__(self, program: TriggerProgram) -> None:
        self.program = program
        self._views = {view.name: view for view in program.views}
        self._auxiliary = {aux.relation.name: aux for aux in program.auxiliary}
        self._deltas = {delta.name: delta for trigger in program.triggers for delta in trigger.deltas}
        self._statements = defaultdict[str, list[tuple[Relation, Statement]]](list)
        for trigger in program.triggers:
            sums = Counter(statement.target for statement in trigger.statements)
            partial = {s.target: s for s in trigger.statements if s.partial and sums[s.target] == 1}
            for statement in trigger.statements:
                self._statements[statement.target].append((trigger.relation, _inlined(statement, partial)))
        self._defined = {aux.materialised.name for aux in program.auxiliary if isinstance(aux.kind, ModelRows)}
        self._owners = {aux.materialised.name: aux.kind for aux in program.auxiliary if aux.kind.owns_view}
        self._known, self._known_deltas = dict[tuple[str, int], str](), dict[tuple[str, int], str]()

    def view(self, name: str) -> tuple[str, ...]:
        """Return the identity of each lane of a view."""
        return tuple(self._lane(name, lane) for lane in range(len(self._views[name].terms[0].lanes)))

    def auxiliary(self, name: str) -> str:
        """Return the identity of an auxiliary relation."""
        return self._of(name, -1, lambda: self._auxiliary_text(self._auxiliary[name]))

    def _lane(self, name: str, lane: int) -> str:
        return self._of(name, lane, lambda: self._lane_text(name, lane))

    def _of(self, name: str, lane: int, text: Any) -> str:
        if (name, lane) not in self._known:
            self._known[name, lane] = "itself"  # NB: a view that is read by what changes it
            self._known[name, lane] = _digest(text())
        return self._known[name, lane]

    def _lane_text(self, name: str, lane: int) -> str:
        """Write what changes a lane of a view, or of a sum that lives as long as the batch.

        Of a model's view it is what it is of, as several trees of views maintain the same.
        """
        if name in self._defined:
            of_model = self._views[name]
            terms = [(term.body, term.lanes[lane]) for term in of_model.terms]
            return _Text(self).of((of_model.keys, of_model.rings[lane], terms))
        lines = [
            self._statement(relation, statement, lane)
            for relation, statement in self._statements[name]
            if statement.lanes[lane] is not None
        ]
        view = self._views.get(name)
        head = _Text(self).of((view.keys, view.rings[lane])) if view else "partial"
        head += _Text(self).of(self._owners[name]) if name in self._owners else ""  # which takes rows out of it
        return "\n".join((head, *sorted(lines)))

    def _statement(self, relation: Relation, statement: Statement, lane: int) -> str:
        text = _Text(self)
        parts = [self.relation(relation), text.of(statement.keys)]
        read = [(self._source(ref, ref.picks[lane] if ref.picks else -1), ref) for ref in statement.refs]
        for known, ref in (*read[:1], *sorted(read[1:], key=lambda each: each[0])):
            row = ref.row and (ref.row.fields, ref.row.is_before)
            parts.append(f"{known}{text.of(ref.variables)}{text.of(row)}{ref.is_after}")
        factors = statement.lanes[lane]
        return " ".join((*parts, *sorted(map(text.of, statement.filters)), "⟨", *sorted(map(text.of, factors or ()))))

    def _source(self, ref: Ref, lane: int) -> str:
        """Return the identity of what is read, whatever its variables."""
        if ref.name in self._deltas:
            if (ref.name, lane) not in self._known_deltas:
                self._known_deltas[ref.name, lane] = _digest(self._delta(self._deltas[ref.name], lane))
            return self._known_deltas[ref.name, lane]
        if ref.row:
            return self.auxiliary(ref.row.relation)
        return self._lane(ref.name, lane) if lane >= 0 else " ".join(self.lanes_or_keys(ref.name))

    def lanes_or_keys(self, name: str) -> tuple[str, ...]:
        """Return the identities of a view of whose records only the keys are read."""
        return self.view(name) if name in self._views else (self._lane(name, 0),)

    def _delta(self, delta: View, lane: int) -> str:
        """Write a pre-aggregated batch, with one of its lanes and the fields that this reads."""
        text = _Text(self)
        lanes = [(term.body, term.lanes[lane] if lane >= 0 else None) for term in delta.terms]
        return f"Δ{text.of(delta.keys)}{text.of([(prune(body, delta.keys, (each,)), each) for body, each in lanes])}"

    def _auxiliary_text(self, aux: AuxiliaryRelation) -> str:
        text, source = _Text(self), aux.materialised
        lanes = [self._lane(source.name, lane) for lane in source.picks]
        reads = [self.auxiliary(name) for name in aux.kind.reads if name in self._auxiliary]
        rows = text.of((source.variables, aux.output.with_lanes(tuple(range(len(lanes)))), aux.kind))
        return " ".join((*lanes, *reads, rows, text.of(aux.relation.fields)))

    def relation(self, relation: Relation) -> str:
        """Return the identity of a relation: its name, or that of the view whose groups its rows are made of."""
        if relation.name in self._auxiliary:
            return self.auxiliary(relation.name)
        return f"{relation.name} {_Text(self).of(relation.parts)}" if relation.parts else relation.name


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _inlined(statement: Statement, partial: Mapping[str, Statement]) -> Statement:
    """Read what a partial product is made of instead of it: whether statements share one does not matter.

    P(k) := Sum_[k](ΔA(k, j) ⋈ M_B(j));  Q(x) += Sum_[x](P(x))   →   Q(x) += Sum_[x](ΔA(x, j) ⋈ M_B(j))
    """
    first, *others = statement.refs
    product = partial.get(first.name)
    if product is None:
        return statement
    inside = {v for ref in product.refs for v in ref.bound_variables}.union(*map(variables, product.filters))
    keys = {key.id: v for key, v in zip(product.keys, first.variables, strict=True)}
    names: dict[int, Expr] = {v.id: keys.get(v.id, replace(v, id=-1 - v.id)) for v in inside}
    filters = (*(rename_factor(factor, names) for factor in product.filters), *statement.filters)
    refs, lanes = [rename_ref(ref, names) for ref in product.refs], list[Lane | None]()
    for number, lane in enumerate(statement.lanes):
        inner = None if lane is None else product.lanes[first.picks[number]]
        lanes.append(None if inner is None else (*(substitute(f, names) for f in inner), *(lane or ())))
    picked = (tuple(ref.picks[p] if p >= 0 else -1 for p in first.picks) if ref.picks else () for ref in refs)
    whole = (*(replace(ref, picks=own) for ref, own in zip(refs, picked, strict=True)), *others)
    return replace(statement, refs=whole, filters=filters, lanes=tuple(lanes))


class _Text:
    """Texts of parts of a program with columns numbered as they first occur, under the identities of relations."""

    def __init__(self, identities: ViewIdentities) -> None:
        self._identities, self._columns = identities, dict[int, int]()

    def of(self, value: Any) -> str:
        """Write a value."""
        match value:
            case Column():
                number = self._columns.setdefault(value.id, len(self._columns))
                return f"#{number} {value.type}{'?' if value.nullable else ''}"
            case Relation():
                return self._identities.relation(value)
            case tuple() | list():
                return f"({', '.join(map(self.of, value))})"
            case frozenset():
                return f"{{{', '.join(sorted(map(self.of, value)))}}}"
            case Mapping():
                return self.of(tuple(sorted(value.items())))
            case Enum():
                return repr(value)
        if is_dataclass(value):
            parts = (getattr(value, each.name) for each in fields(value) if each.compare)
            return f"{type(value).__name__}({', '.join(self.of(p) for p in parts if not isinstance(p, Span))})"
        return repr(value)
