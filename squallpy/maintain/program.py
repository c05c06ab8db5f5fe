"""Trigger programs: what maintenance compiles a query to, before anything is placed or run.

A `View` is a materialised Sum_[keys](body ⋈ ⟨lanes⟩). A `Trigger` says what one batch of changes to one relation does:
its `deltas` pre-aggregate the batch, its `statements` then add to views, the most complex view first, so that each
statement reads the views as they were before the batch.
"""

from dataclasses import dataclass

from squallpy.catalog.relation import Relation
from squallpy.logical.expressions import Column, Expr
from squallpy.maintain.relational.calculus import Factor, Lane, Rel

RESULT = "Q"  # the name of the view that the query asks for


@dataclass(frozen=True, slots=True)
class View:
    """A materialised view, or (over a delta atom) a pre-aggregated batch (§3.3)."""

    name: str
    keys: tuple[Column, ...]
    body: tuple[Factor, ...]
    lanes: tuple[Lane, ...]

    @property
    def atoms(self) -> tuple[Rel, ...]:
        return tuple(f for f in self.body if isinstance(f, Rel))

    @property
    def degree(self) -> int:
        """How many relation atoms the view joins: its complexity."""
        return len(self.atoms)


@dataclass(frozen=True, slots=True)
class Ref:
    """A use of a view or delta: the variables in the place of its keys, and which lane goes into each lane."""

    name: str
    variables: tuple[Column, ...]
    picks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """target(keys) += Sum_[keys](refs ⋈ filters ⋈ ⟨lanes⟩); the first ref is a delta."""

    target: str
    keys: tuple[Column, ...]
    refs: tuple[Ref, ...]
    filters: tuple[Factor, ...]
    lanes: tuple[Lane, ...]


@dataclass(frozen=True, slots=True)
class Trigger:
    """ON UPDATE relation."""

    relation: Relation
    deltas: tuple[View, ...]
    statements: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Measure:
    """An aggregate of the query in terms of the lanes of its view.

    value = Σ coefficient · lane; NULL where `present` (a sum of the same form, the non-NULL inputs) is 0; `function`
    is sum, count or avg, the last dividing the two.
    """

    function: str
    column: Column
    value: tuple[tuple[int, int], ...]
    present: tuple[tuple[int, int], ...]
    scale: int = 0


@dataclass(frozen=True, slots=True)
class Finish:
    """From the top-level view to printed rows: measures, HAVING, the SELECT list, ORDER BY and LIMIT.

    `repeat`: rows are printed as often as their multiplicity says (a query without aggregates).
    `single`: exactly one row, also over nothing (aggregates without GROUP BY).
    """

    measures: tuple[Measure, ...]
    having: Expr | None
    items: tuple[tuple[str, Expr], ...]
    order: tuple[tuple[Expr, bool, bool], ...]
    limit: int | None
    offset: int
    repeat: bool
    single: bool


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled query: its views (the first is the result), its triggers and how rows are printed."""

    views: tuple[View, ...]
    triggers: tuple[Trigger, ...]
    finish: Finish

    @property
    def result(self) -> View:
        return self.views[0]

    @property
    def relations(self) -> tuple[Relation, ...]:
        return tuple(trigger.relation for trigger in self.triggers)
