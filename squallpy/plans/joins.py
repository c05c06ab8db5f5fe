"""Joins of two inputs: by equality of keys, or by any predicate."""

from squallpy.base.errors import SquallError
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.scope import Scope
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import Expr, conjunction
from squallpy.logical.nodes import inner_join
from squallpy.plans.component import Bound, Component, Texts, as_texts


class JoinComponent(Component):
    """Base of the joins."""

    def __init__(self, left: Component, right: Component, name: str | None) -> None:
        both = (getattr(each, "name", "?") for each in (left, right))
        super().__init__(name or "_".join(both), left, right)

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

    def __init__(
        self, left: Component, left_key: Texts, right: Component, right_key: Texts, *, name: str | None = None
    ) -> None:
        super().__init__(left, right, name)
        self.left_key, self.right_key = as_texts(left_key), as_texts(right_key)
        self.check()

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

    def __init__(self, left: Component, right: Component, on: str, *, name: str | None = None) -> None:
        super().__init__(left, right, name)
        self.on = on
        self.check()

    def _predicate(self, ctx: Context, left: Bound, right: Bound, scope: Scope) -> Expr:
        return self.condition(ctx, scope, self.on)
