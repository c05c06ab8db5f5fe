"""Trigger programs, to which maintenance compiles a query, independent of the execution.

A `View` is a materialised Sum_[keys](body ⋈ ⟨lanes⟩). A `Trigger` maintains the views for a batch of changes to one
relation: its `deltas` pre-aggregate the batch, then its `statements` add to views. Their order ensures that each reads
the version of a view that it names: before the batch or, where a relation is joined with itself, NEW, after it.

An `AuxiliaryRelation` makes rows of a view, such as the nested aggregates of each group, for outer views to
join. Its change is extracted from the groups that the batch touched (§3.2.2), and has a trigger like any relation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from squallpy.base.rings import LaneRing
from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.calculus import Factor, Lane, product_ring
from squallpy.program.output_spec import OutputSpec
from squallpy.program.views import Ref, View

RESULT = "Q"  # the name of the view that the query asks for


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
        factors = [(of(ref.name), ref.picks) for ref in self.refs if ref.picks and not ref.row]
        lanes = enumerate(self.lanes)
        return tuple(product_ring(lane or (), [rings[picks[n]] for rings, picks in factors]) for n, lane in lanes)


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger: the statements that a batch of a relation runs."""

    relation: Relation
    deltas: tuple[View, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled query: its views, the first of which is the result, its triggers, how rows are printed, and its
    auxiliary relations, innermost first."""

    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    output: OutputSpec
    auxiliary: tuple[AuxiliaryRelation, ...] = ()

    @property
    def result(self) -> View:
        return self.views[0]

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The streams and tables that are read."""
        made = {aux.relation.name for aux in self.auxiliary}
        return tuple(trigger.relation for trigger in self.triggers if trigger.relation.name not in made)


@dataclass(frozen=True, slots=True)
class Lowered:
    """A query in the ring calculus: its view and its auxiliary relations, innermost first, nothing materialised yet."""

    view: View
    output: OutputSpec
    relations: tuple[Relation, ...]
    auxiliary: tuple[AuxiliaryRelation, ...] = ()
