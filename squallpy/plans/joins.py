"""Joins of two inputs: by equality of keys, or by any predicate."""

from typing import ClassVar

from squallpy.base.errors import SquallError, nearest
from squallpy.base.pinned_component import BROADCAST, GRID, HASH, PinnedComponent
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Scope
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, conjunction
from squallpy.logical.nodes import inner_join
from squallpy.plans.component import Bound, Component, Texts, as_texts, new_context
from squallpy.plans.equal_fields import RelationField, equal_fields


class JoinComponent(Component):
    """Base of the joins.

    Args:
        partitioning: hash, hash(key), grid, or broadcast(input), as `choices` says.
        operator: SHJ, Hybrid, StaticMid, StaticOpt or Dynamic (docs/joins.md).
        parallelism: The partitions that hold its state.
    """

    schemes: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        left: Component,
        right: Component,
        name: str | None,
        partitioning: str | None,
        operator: str | None,
        parallelism: int | None,
    ) -> None:
        both = (getattr(each, "name", "?") for each in (left, right))
        super().__init__(name or "_".join(both), left, right)
        self.choices = self.read_choices(partitioning, operator, parallelism, self.schemes)
        names = self.choices.arguments
        inputs = [each.name.lower() for each in self.inputs]
        if self.choices.partitioning == BROADCAST and (len(names) != 1 or inputs.count(names[0].lower()) != 1):
            hint = f"write broadcast({self.inputs[0].name}) or broadcast({self.inputs[1].name})"
            raise self.error("SQ7003", f"{partitioning} does not name one of its inputs", hint, partitioning or "")
        self.check()

    def pinned(self) -> PinnedComponent:
        chosen, keys, fields = self.choices, tuple[str, ...](), tuple[tuple[RelationField, ...], ...]()
        relations = tuple(each.relations for each in self.inputs)
        names = tuple(each.name for each in self.inputs)
        at = 0
        if chosen.partitioning == BROADCAST:
            at = [name.lower() for name in names].index(chosen.arguments[0].lower())
        if chosen.partitioning == HASH:
            keys, fields = self._hashed()
        return PinnedComponent(
            self.kind, self.name, names, relations, chosen.partitioning, keys, fields, at, chosen.operator,
            chosen.parallelism,
        )  # fmt: skip

    def _hashed(self) -> tuple[tuple[str, ...], tuple[tuple[RelationField, ...], ...]]:
        """Find the keys that are hashed, and the fields equal to each."""
        raise NotImplementedError

    def bind(self, ctx: Context) -> Bound:
        left, right = (each.bind(ctx) for each in self.inputs)
        scope = Scope([*left.scope.sources, *right.scope.sources])
        names = [source.name.lower() for source in scope.sources]
        if twice := next((s.name for s in right.scope.sources if names.count(s.name.lower()) > 1), None):
            message = f'{self.edge()}: columns of both are qualified by "{twice}"'
            raise SquallError("SQ2007", message, self.site.span(), 'give one of them a name: name="…"')
        return Bound(inner_join(left.node, right.node, self._predicate(ctx, left, right, scope)), scope)

    def _predicate(self, ctx: Context, left: Bound, right: Bound, scope: Scope) -> Expr:
        raise NotImplementedError


class EquiJoin(JoinComponent):
    """The pairs of rows whose keys are equal; NULL equals nothing.

    EquiJoin(customer, "c_custkey", orders, "o_custkey")

    Args:
        left_key: Expressions over columns of `left`.
        right_key: As many over columns of `right`.
    """

    schemes = (HASH, BROADCAST, GRID)

    def __init__(
        self,
        left: Component,
        left_key: Texts,
        right: Component,
        right_key: Texts,
        *,
        name: str | None = None,
        partitioning: str | None = None,
        operator: str | None = None,
        parallelism: int | None = None,
    ) -> None:
        self.left_key, self.right_key = as_texts(left_key), as_texts(right_key)
        super().__init__(left, right, name, partitioning, operator, parallelism)

    def check(self) -> Bound:
        bound = super().check()
        if self.choices.partitioning == HASH:
            self._hashed()
        return bound

    def _hashed(self) -> tuple[tuple[str, ...], tuple[tuple[RelationField, ...], ...]]:
        pairs = list(zip(self.left_key, self.right_key, strict=True))
        wanted = self.choices.arguments
        for name in wanted:
            if not any(name.lower() in (key.lower() for key in pair) for pair in pairs):
                hint = nearest(name, [key for pair in pairs for key in pair])
                raise self.error("SQ7003", f'"{name}" is none of its keys', hint, f"hash({', '.join(wanted)})")
        chosen = [pair for pair in pairs if not wanted or {key.lower() for key in pair} & {w.lower() for w in wanted}]
        ctx, found = new_context(), []
        bound = [each.bind(ctx) for each in self.inputs]
        for pair in chosen:
            sides = zip(bound, pair, self.inputs, strict=True)
            fields = [
                equal_fields(each.node, self.expression(ctx, each.scope, key, self.edge(input)))
                for each, key, input in sides
            ]
            if not all(fields):
                key = pair[bool(fields[0])]
                hint = "hash by another, or broadcast an input"
                raise self.error("SQ7003", f'the key "{key}" is computed, and cannot be hashed', hint, key)
            found.append(tuple(sorted({field for each in fields for field in each})))
        return wanted or self.left_key, tuple(found)

    def _predicate(self, ctx: Context, left: Bound, right: Bound, scope: Scope) -> Expr:
        keys, other_keys = self.left_key, self.right_key
        edges = tuple(map(self.edge, self.inputs))
        if len(keys) != len(other_keys) or not keys:
            counts = f"{edges[0]} has {len(keys)} keys, {edges[1]} {len(other_keys)}"
            raise SquallError("SQ2005", counts, self.site.span(), "name as many of both")
        return conjunction(self._equality(ctx, left, right, pair, edges) for pair in zip(keys, other_keys, strict=True))

    def _equality(self, ctx: Context, left: Bound, right: Bound, pair: tuple[str, str], edges: tuple[str, ...]) -> Expr:
        ours = self.expression(ctx, left.scope, pair[0], edges[0])
        theirs = self.expression(ctx, right.scope, pair[1], edges[1], last=True)
        try:
            return call("=", ours, theirs)
        except SquallError as error:
            where = f"{self.edge()}: {pair[0]} and {pair[1]}: {error.message}"
            raise SquallError(error.code, where, self.site.span(pair[1], last=True), error.hint) from None


class ThetaJoin(JoinComponent):
    """The pairs of rows for which a predicate is TRUE.

    ThetaJoin(bids, asks, "bids.price >= asks.price")
    """

    schemes = (GRID, BROADCAST)

    def __init__(
        self,
        left: Component,
        right: Component,
        on: str,
        *,
        name: str | None = None,
        partitioning: str | None = None,
        operator: str | None = None,
        parallelism: int | None = None,
    ) -> None:
        self.on = on
        super().__init__(left, right, name, partitioning, operator, parallelism)

    def _predicate(self, ctx: Context, left: Bound, right: Bound, scope: Scope) -> Expr:
        return self.condition(ctx, scope, self.on)
