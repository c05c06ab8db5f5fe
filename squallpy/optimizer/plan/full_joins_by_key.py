"""FULL JOINs of three or more inputs on one key, as LEFT JOINs of the distinct values of the key.

    a ⟗ b ⟗ c on k   →   (K ⟕ a ⟕ b ⟕ c) ∪ σ_{k IS NULL}(a) ∪ σ_{k IS NULL}(b) ∪ σ_{k IS NULL}(c), with NULLs,
                         K := the distinct values of k in a, b and c

One after the other, each join would have to find the rows of all joins before it that have no match. The key of these
rows, COALESCE(a.k, b.k), is a column of K: a BIGINT, if some inputs have INTs and others BIGINTs.

A key that is computed, a.k + 1, becomes a column of its input. In the rows joined it is COALESCE(a.k + 1, b.k + 1) or
COALESCE(a.k, b.k) + 1, which are equal: rows that match have one value of it, and rows without a match only NULLs of
other inputs.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from squallpy.base.records import dataclass
from squallpy.base.types import Kind, Type, unify
from squallpy.logical.coercion import coerce_exactly
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.expression_builders import call, coalesce
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    as_nullable,
    children,
    columns,
    conjunction,
    conjuncts,
    disjunction,
    is_null,
    is_strict,
    not_null,
    rebuild,
    substitute,
    transform,
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
        computed: The columns of keys that are computed, by the expression over their input's columns.
    """

    inputs: tuple[Node, ...]
    keys: tuple[Columns, ...]
    operands: Mapping[int, Columns]
    computed: Mapping[Expr, Column]

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
        if (args := coalesce_arguments(expr)) is None:
            return self._resolve_computed(expr)
        parts = [self.resolve(arg) for arg in args]
        return None if None in parts else tuple({c.id: c for part in parts for c in part or ()}.values())

    def _resolve_computed(self, expr: Expr) -> Columns | None:
        """List the columns of one computed key, of different inputs, whose COALESCE an expression is."""
        terms = self._distribute(expr) or ()
        found = {c.id: c for c in map(self.computed.get, map(_as_nullable, terms)) if c is not None}
        is_one_key = any(found.keys() <= {*_ids(every)} for every in self.equal_columns)
        return tuple(found.values()) if found and len(found) == len(terms) and is_one_key else None

    def _distribute(self, expr: Expr) -> tuple[Expr, ...] | None:
        """Distribute operators over COALESCE, in terms of the inputs' columns; None if one may have a value of NULLs.

        COALESCE(a.k, b.k) + 1  →  a.k + 1, b.k + 1
        """
        if isinstance(expr, Column):
            return tuple(coerce_exactly(c, expr.type) for c in self.operands.get(expr.id, ())) or None
        if args := coalesce_arguments(expr):
            parts = [self._distribute(arg) for arg in args]
            return None if None in parts else tuple(term for part in parts for term in part or ())
        operands = children(expr) if is_strict(expr) else ()
        terms: dict[Expr, tuple[Expr, ...] | None] = {
            e: self._distribute(e) for e in operands if not isinstance(e, Literal)
        }
        counts = {len(of_operand or ()) for of_operand in terms.values()}
        if len(counts) != 1:
            return None
        each = [terms.get(e) or (e,) * max(counts) for e in operands]
        return tuple(rebuild(expr, by_input) for by_input in zip(*each, strict=True)) or None


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
        if not pairs:
            return None
        left = self._side(joined.left, [ours for ours, _ in pairs])
        right = self._side(joined.right, [theirs for _, theirs in pairs])
        both = _Chain(
            (*left.inputs, *right.inputs),
            (*left.keys, *right.keys),
            {**left.operands, **right.operands},
            {**left.computed, **right.computed},
        )
        if not all(_are_alike([c.type for c in every]) for every in both.equal_columns):
            return None
        found = [
            _merge(both.resolve(e), both.resolve(fold_nulls(other)), left, right)
            for e, other in zip(of_joined, of_lost, strict=True)
        ]
        union = replace(both, operands=_by_id(node.columns, found))
        return replace(both, operands=_by_id(plan.output, map(union.resolve, exprs)))

    def _side(self, node: Node, key: Sequence[Expr]) -> _Chain:
        """Find the inputs of a side: those of its FULL JOINs if they have this key, else itself."""
        if chain := self._chain(node):
            known = [frozenset(_ids(every)) for every in chain.equal_columns]
            named = [frozenset(_ids(chain.resolve(e) or ())) for e in key]
            if len(named) == len(known) and {*named} == {*known}:
                places = [known.index(ids) for ids in named]
                return replace(chain, keys=tuple(tuple(own[i] for i in places) for own in chain.keys))
        own: dict[Expr, Column] = {c: c for c in map(uncast, key) if isinstance(c, Column)}
        made = {
            e: self._allocator.column("key", e.type, e.nullable) for e in dict.fromkeys(key) if uncast(e) not in own
        }
        child = Project(node, (*((c, c) for c in node.output), *((c, e) for e, c in made.items()))) if made else node
        columns = tuple({**own, **made}[uncast(e)] for e in key)
        return _Chain(
            (child,), (columns,), {c.id: (c,) for c in node.output}, {_as_nullable(e): c for e, c in made.items()}
        )


def _are_alike(types: Sequence[Type]) -> bool:
    """True if columns of these types may be one key: all of one type, or integers."""
    return len({*types}) == 1 or all(type.is_integer for type in types)


def _widest(types: Iterable[Type]) -> Type:
    """Return the type that has the values of columns of one type, or of integers."""
    found = unify([*types])
    assert found is not None
    return found


def _as_nullable(expr: Expr) -> Expr:
    """Rewrite an expression as if all columns may be NULL, without a cast of an integer that changes no value."""

    def relaxed(e: Expr) -> Expr | None:
        return as_nullable(e) if isinstance(e, Column) else replace(e, nullable=True) if isinstance(e, Call) else None

    match expr:
        case Cast(arg, type) if arg.type.is_integer and type.kind is Kind.BIGINT:
            return _as_nullable(arg)
    return transform(expr, relaxed)


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
