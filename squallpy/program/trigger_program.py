"""Trigger programs, to which maintenance compiles a query, independent of the execution.

A `View` is a materialised Sum_[keys](body ⋈ ⟨lanes⟩). A `Trigger` maintains the views for a batch of changes to one
relation: its `deltas` pre-aggregate the batch, then its `statements` add to views. Their order ensures that each reads
the version of a view that it names: before the batch or, where a relation is joined with itself, NEW, after it.

An `AuxiliaryRelation` makes rows of a view, such as the nested aggregates of each group, for outer views to
join. Its change is extracted from the groups that the batch touched (§3.2.2), and has a trigger like any relation.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from squallpy.base.records import dataclass
from squallpy.base.rings import LaneRing
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Factor, Lane, has_gap, product_ring
from squallpy.program.output_spec import OutputSpec
from squallpy.program.views import Ref, View

RESULT = "Q"  # the name of the view that a query asks for, if it is alone


def result_name(number: int, of: int) -> str:
    """Name the view that one of several queries asks for; they are numbered from 1 on."""
    return RESULT if of == 1 else f"{RESULT}{number}"


@dataclass(frozen=True, slots=True)
class Statement:
    """target(keys) += Sum_[keys](refs ⋈ filters ⋈ ⟨lanes⟩); the first ref is a delta.

    The target of a `partial` one is not a view: it lives as long as the batch, for later statements.
    """

    target: str
    keys: tuple[Column, ...]
    refs: tuple[Ref, ...]
    filters: tuple[Factor, ...]
    lanes: tuple[Lane | None, ...]
    partial: bool = False

    def rings(self, of: Callable[[str], Sequence[LaneRing]]) -> tuple[LaneRing, ...]:
        """Choose the rings of its products.

        Args:
            of: The rings of a view or delta that it reads.
        """
        return tuple(product_ring(lane, rings) for lane, rings in self._products(of))

    def has_gap(self, of: Callable[[str], Sequence[LaneRing]]) -> bool:
        """True if no ring is over the variables of one of its products (`calculus.has_gap`)."""
        return any(has_gap(lane, rings) for lane, rings in self._products(of))

    def _products(self, of: Callable[[str], Sequence[LaneRing]]) -> Iterator[tuple[Lane, list[LaneRing]]]:
        """Yield its products: the lane of each, and the rings of the other factors."""
        factors = [(of(ref.name), ref.picks) for ref in self.refs if ref.picks and not ref.row]
        for n, lane in enumerate(self.lanes):
            yield lane or (), [rings[picks[n]] for rings, picks in factors]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: the statements that a batch of a relation runs."""

    relation: Relation
    deltas: tuple[View, ...]
    statements: tuple[Statement, ...]

    def with_statements(self, statements: Iterable[Statement]) -> "Trigger":
        """Return it with these statements, and the deltas that they read."""
        own = tuple(statements)
        read = {ref.name for statement in own for ref in statement.refs}
        return Trigger(self.relation, tuple(delta for delta in self.deltas if delta.name in read), own)


@dataclass(frozen=True, slots=True)
class TriggerProgram:
    """Compiled queries: their views, those of the results first, their triggers, how rows of results are printed, and
    their auxiliary relations, innermost first.

    Args:
        result_of: The number of the result that each output prints.
    """

    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    outputs: tuple[OutputSpec, ...]
    result_of: tuple[int, ...]
    auxiliary: tuple[AuxiliaryRelation, ...] = ()

    @property
    def results(self) -> tuple[View, ...]:
        """The views that the queries ask for."""
        return self.views[: 1 + max(self.result_of, default=-1)]

    @property
    def stored(self) -> tuple[View, ...]:
        """The views that they are computed from."""
        return self.views[len(self.results) :]

    @property
    def required(self) -> frozenset[str]:
        """The names of the views that are needed whatever statements read: results, and auxiliary relations' views."""
        sources = (name for aux in self.auxiliary for name in (aux.view.name, aux.materialised.name))
        return frozenset(view.name for view in self.results).union(sources)

    @property
    def printed(self) -> tuple[tuple[OutputSpec, View], ...]:
        """Each output with the result that it prints."""
        return tuple((output, self.views[of]) for output, of in zip(self.outputs, self.result_of, strict=True))

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The streams and tables that are read."""
        made = {aux.relation.name for aux in self.auxiliary}
        return tuple(trigger.relation for trigger in self.triggers if trigger.relation.name not in made)


def without_unread_views(program: TriggerProgram) -> TriggerProgram:
    """Drop the views that no statement, result or auxiliary relation reads, and what maintains them alone."""
    views, triggers = program.views, program.triggers
    while (
        unread := {v.name for v in views}
        - program.required
        - {r.name for t in triggers for s in t.statements for r in s.refs}
    ):
        views = tuple(view for view in views if view.name not in unread)
        triggers = tuple(t.with_statements(s for s in t.statements if s.target not in unread) for t in triggers)
    return replace(program, views=views, triggers=tuple(t for t in triggers if t.statements))


@dataclass(frozen=True, slots=True)
class Lowered:
    """Queries in the ring calculus: their views and how these are printed, and the auxiliary relations of all.

    These are given innermost first. Nothing is materialised yet.

    Args:
        result_of: The number of the view that each output prints.
    """

    views: tuple[View, ...]
    outputs: tuple[OutputSpec, ...]
    result_of: tuple[int, ...]
    relations: tuple[Relation, ...]
    auxiliary: tuple[AuxiliaryRelation, ...] = ()
