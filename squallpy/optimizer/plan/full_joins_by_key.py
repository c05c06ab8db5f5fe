"""FULL JOINs of three or more inputs on one key, as LEFT JOINs of the distinct values of the key.

    a ⟗ b ⟗ c on k   →   (K ⟕ a ⟕ b ⟕ c) ∪ σ_{k IS NULL}(a) ∪ σ_{k IS NULL}(b) ∪ σ_{k IS NULL}(c), with NULLs,
                         K := the distinct values of k in a, b and c

One after the other, each join would have to find the rows of all joins before it that have no match. The key of these
rows, COALESCE(a.k, b.k), is a column of K: a BIGINT, if some inputs have INTs and others BIGINTs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from squallpy.base.records import dataclass
from squallpy.base.types import Type, unify
from squallpy.logical.coercion import coerce_exactly
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    disjunction,
    is_null,
    not_null,
    substitute,
    uncast,
)
from squallpy.logical.nodes import Aggregate, AntiJoin, Filter, LeftJoin, Node, Project, Union
from squallpy.logical.null_folding import coalesce_arguments, fold_nulls
from squallpy.optimizer.pass_manager import top_down

FEWEST = 3  # inputs; two are joined by fewer statements as they are
Columns = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class _Chain:
    """FULL JOINs on one key.

    Args:
        keys: The columns of each input that are its key.
        operands: The columns of inputs whose COALESCE a column of the joins is, by its id.
    """

    inputs: tuple[Node, ...]
    keys: tuple[Columns, ...]
    operands: Mapping[int, Columns]

    @property
    def inputs_with_keys(self) -> list[tuple[Node, Columns]]:
        return list(zip(self.inputs, self.keys, strict=True))

    @property
    def equal_columns(self) -> list[Columns]:
        """The columns of all inputs for each column of the key."""
        return list(zip(*self.keys, strict=True))

    def resolve(self, expr: Expr) -> Columns | None:
        """List the columns of inputs whose COALESCE an expression is, none for NULL; None for another expression.

        Casts from INT to BIGINT are left out.
        """
        match uncast(expr):
            case Column(id):
                return self.operands.get(id)
            case Literal(None):
                return ()
        parts = [self.resolve(arg) for arg in coalesce_arguments(expr) or ()]
        found = {c.id: c for part in parts for c in part or ()}
        return None if None in parts or not parts else tuple(found.values())


def full_joins_by_key(plan: Node, allocator: ColumnAllocator) -> Node:
    """Replace FULL JOINs of three inputs or more on one key by LEFT JOINs of the key's distinct values."""
    return top_down(plan, _FullJoins(allocator).rewrite)


class _FullJoins:
    """The chains of FULL JOINs of a plan, each found once, and their rewriting."""

    def __init__(self, allocator: ColumnAllocator) -> None:
        self._allocator = allocator
        self._chains = dict[int, tuple[Node, _Chain | None]]()  # by the operator's id; keeps the operators alive

    def rewrite(self, node: Node) -> Node | None:
        """Rewrite the chain whose last join an operator is."""
        chain = self._chain(node) if isinstance(node, Union) else None
        if chain is None or len(chain.inputs) < FEWEST or len(chain.operands) < len(node.output):
            return None
        values = self._distinct_keys(chain)
        keys = {_ids(every): value for every, value in zip(chain.equal_columns, values.output, strict=True)}
        joined: Node = values
        for child, key in chain.inputs_with_keys:
            same = (call("=", value, c) for value, c in zip(values.output, key, strict=True))
            joined = LeftJoin(joined, child, conjunction(same))
        rows = [self._project(chain, node.output, joined, keys)]
        for child, key in chain.inputs_with_keys:
            if nullable := [c for c in key if c.nullable]:
                alone = Filter(child, disjunction(map(is_null, nullable)))
                rows.append(self._project(chain, node.output, alone, {}))
        return Union(tuple(rows), node.output)

    def _project(self, chain: _Chain, output: Columns, plan: Node, keys: Mapping[tuple[int, ...], Column]) -> Node:
        """Compute the columns of a chain over a plan that has the columns of all of its inputs, or of some.

        Args:
            keys: Columns of the plan that are the key, by the ids of the inputs' columns.
        """
        items, own = list[tuple[Column, Expr]](), {c.id: c for c in plan.output}
        for column in output:
            operands = chain.operands[column.id]
            known = [own[c.id] for c in operands if c.id in own]
            value = coalesce(*(coerce_exactly(c, column.type) for c in known)) if known else Literal(None, column.type)
            value = keys.get(_ids(operands), value)
            items.append((self._allocator.column(column.name, column.type, value.nullable), value))
        return Project(plan, tuple(items))

    def _distinct_keys(self, chain: _Chain) -> Aggregate:
        """Collect the distinct values of the key that are not NULL."""
        inputs, types = list[Node](), [_widest(c.type for c in every) for every in chain.equal_columns]
        for child, key in chain.inputs_with_keys:
            there = conjunction(not_null(c) for c in key if c.nullable)
            values = tuple(map(coerce_exactly, key, types))
            items = tuple(
                (self._allocator.column(c.name, v.type, v.nullable), v) for c, v in zip(key, values, strict=True)
            )
            inputs.append(Project(child if there == TRUE else Filter(child, there), items))
        every = tuple(self._allocator.column(c.name, t, False) for c, t in zip(chain.keys[0], types, strict=True))
        return Aggregate(Union(tuple(inputs), every), self._allocator.copies(every), ())

    def _chain(self, node: Node) -> _Chain | None:
        if id(node) not in self._chains:
            self._chains[id(node)] = node, self._find_chain(node)
        return self._chains[id(node)][1]

    def _find_chain(self, plan: Node) -> _Chain | None:
        """Find the FULL JOINs on one key, one or more, that a plan is, below projections."""
        node, exprs = _below_projections(plan)
        if not isinstance(node, Union) or len(node.children) != 2:
            return None
        (joined, of_joined), (lost, of_lost) = map(_below_projections, node.children)
        if not (isinstance(joined, LeftJoin) and isinstance(lost, AntiJoin) and joined.on == lost.on):
            return None
        pairs = _equated(joined) if joined.left is lost.right and joined.right is lost.left else []
        left = self._side(joined.left, [ours for ours, _ in pairs])
        right = self._side(joined.right, [theirs for _, theirs in pairs])
        if not pairs or left is None or right is None:
            return None
        both = _Chain((*left.inputs, *right.inputs), (*left.keys, *right.keys), {**left.operands, **right.operands})
        if not all(_are_alike([c.type for c in every]) for every in both.equal_columns):
            return None
        found = [
            _merge(both.resolve(e), both.resolve(fold_nulls(other)), left, right)
            for e, other in zip(of_joined, of_lost, strict=True)
        ]
        union = replace(both, operands=_by_id(node.columns, found))
        return replace(both, operands=_by_id(plan.output, map(union.resolve, exprs)))

    def _side(self, node: Node, key: Sequence[Expr]) -> _Chain | None:
        """Find the inputs of a side: those of its FULL JOINs if they have this key, else itself."""
        if chain := self._chain(node):
            known = [_ids(every) for every in chain.equal_columns]
            named = [_ids(chain.resolve(e) or ()) for e in key]
            if sorted(named) == sorted(known):
                places = [known.index(ids) for ids in named]
                return replace(chain, keys=tuple(tuple(own[i] for i in places) for own in chain.keys))
        own = tuple(c for c in map(uncast, key) if isinstance(c, Column))
        return _Chain((node,), (own,), {c.id: (c,) for c in node.output}) if len(own) == len(key) else None


def _are_alike(types: Sequence[Type]) -> bool:
    """True if columns of these types may be one key: all of one type, or integers."""
    return len({*types}) == 1 or all(type.is_integer for type in types)


def _widest(types: Iterable[Type]) -> Type:
    """Return the type that has the values of columns of one type, or of integers."""
    found = unify([*types])
    assert found is not None
    return found


def _ids(some: Iterable[Column]) -> tuple[int, ...]:
    return tuple(c.id for c in some)


def _by_id(output: Columns, found: Iterable[Columns | None]) -> dict[int, Columns]:
    """Map each column, by id, to what has been found of it, if anything."""
    return {c.id: some for c, some in zip(output, found, strict=True) if some}


def _below_projections(node: Node) -> tuple[Node, tuple[Expr, ...]]:
    """Find the operator below projections, and the columns above in its terms."""
    exprs: tuple[Expr, ...] = node.output
    while isinstance(node, Project):
        items = {c.id: e for c, e in node.items}
        node, exprs = node.child, tuple(substitute(e, items) for e in exprs)
    return node, exprs


def _equated(join: LeftJoin) -> list[tuple[Expr, Expr]]:
    """Pair the expressions of both sides that a join equates; none if it has another condition."""
    pairs, left, right = list[tuple[Expr, Expr]](), join.left.ids, join.right.ids
    for conjunct in conjuncts(join.on):
        match conjunct:
            case Call("=", (a, b)):
                sides = ((x, y) for x, y in ((a, b), (b, a)) if _reads(x) <= left and _reads(y) <= right)
                pairs += islice(sides, 1)
    return pairs if len(pairs) == len(conjuncts(join.on)) else []


def _reads(expr: Expr) -> set[int]:
    return {c.id for c in columns(expr)}


def _merge(joined: Columns | None, lost: Columns | None, left: _Chain, right: _Chain) -> Columns | None:
    """Find the columns whose COALESCE a column is in the rows of a FULL JOIN's left side, and in the others.

    Args:
        joined, lost: Those in the rows of the left side, and in the others.
    """
    if joined is None or lost is None:
        return None
    if not lost and not any(c.id in node.ids for c in joined for node in right.inputs):
        return joined
    if _ids(joined) == _ids(lost):
        return joined
    for ours, theirs in zip(left.equal_columns, right.equal_columns, strict=True):
        if _ids(lost) == _ids(theirs) and _ids(joined) in (_ids(ours), _ids((*ours, *theirs))):
            return *ours, *theirs
    return None
