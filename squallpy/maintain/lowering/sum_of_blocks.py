"""Plans → sums of select-project-join blocks: joins multiply them, unions and outer joins add them."""

from collections.abc import Iterator

from squallpy.base.types import BOOLEAN
from squallpy.catalog.relation import Relation
from squallpy.logical.constant_folding import Evaluate
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    is_null,
    not_null,
)
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    Sort,
    Union,
    Window,
)
from squallpy.maintain.lowering.auxiliary import AuxiliaryRelations
from squallpy.maintain.lowering.block import Block, drop_empty, folding, join_blocks
from squallpy.optimizer.plan.groupjoin import defaulted
from squallpy.optimizer.plan.materialise_outer_joins import bag, optional
from squallpy.optimizer.plan.split_aggregates import split_aggregates

MOST = 8  # products that a query or an auxiliary relation is multiplied out to


class _Many(Exception):
    """A plan multiplied out is too many products."""


class SumOfBlocks:
    """Plans as sums of select-project-join blocks, with the relations met on the way and the nests made."""

    def __init__(self, evaluate: Evaluate | None, ids: Iterator[int]) -> None:
        self._fold, self.ids = folding(evaluate), ids
        self.relations: dict[str, Relation] = {}
        self.auxiliary = AuxiliaryRelations(ids, self.relations, self.within)
        self._few = False  # are outer joins, and sums that are joined, nests?
        self._made: dict[tuple[bool, int], tuple[Node, list[Block]]] = {}  # by id, which is no other's while it is here

    def within(self, node: Node) -> list[Block]:
        """The blocks of all that is below an operator; with nests for what would make too many of them."""
        auxiliary, made, few = self.auxiliary.copy(), self._made.copy(), self._few
        try:
            self._few = False
            return self.of(node)
        except _Many:
            self.auxiliary.restore(auxiliary)
            self._made, self._few = made, True
            return self.of(node)
        finally:
            self._few = few

    def of(self, node: Node) -> list[Block]:
        """The blocks of a plan, one's own; raises _Many if they are more than they have to be."""
        key = self._few, id(node)
        if key not in self._made:  # an outer join reads its left side twice, n of them the first one's 2ⁿ times
            every = self._of(node)
            if len(every) > MOST and not self._few:
                raise _Many
            self._made[key] = node, every
        return [block.copy() for block in self._made[key][1]]

    def _of(self, node: Node) -> list[Block]:
        match node:
            case Scan(relation):
                if all(nest.relation is not relation for nest in self.auxiliary.nests):
                    self.relations[relation.name] = relation
                return [Block([node], [], {}, self._fold)]
            case Filter(LeftJoin() as join, predicate) if lost := self._lost(join, predicate):
                return lost
            case Filter(child, predicate):
                every = self.of(child)
                for block in every:
                    block.restrict(predicate)
                return drop_empty(every)
            case Project(child, items):
                every = self.of(child)
                for block in every:
                    block.compute(items)
                return every
            case Join(left, right, on):
                ours, theirs = self.of(left), self.of(right)
                if self._few and len(ours) > 1 and len(theirs) > 1:
                    theirs = self.of(bag(right, self.ids))
                return drop_empty([join_blocks(a, b, on) for a in ours for b in theirs])
            case LeftJoin(left, right, on):
                return self._defaulted(node) or self._outer(node)
            case SemiJoin(left, right, on):
                return self._matched(left, right, on)
            case AntiJoin(left, right, on):
                return self._lonely(left, right, on) if self._few else self._unmatched(left, right, on)
            case Union(children, columns):
                every = []
                for child in children:
                    mine = self.of(child)
                    for block in mine:
                        block.compute(zip(columns, child.output, strict=True))
                    every += mine
                return every
            case Window():
                scan = self.auxiliary.of_window(node)
                return [self._of_nest(node, scan)]
            case Sort(child):
                return self.of(child)  # an ordering inside a view or derived table orders nothing
            case Aggregate() if split := split_aggregates(node, self.ids):  # one that a groupjoin has made
                return self.of(split)
            case Aggregate() | Repeat():
                return [self._of_nest(node, self.auxiliary.of_groups(node))]
        raise AssertionError(f"the binder let {type(node).__name__} below a join")

    def _of_nest(self, node: Node, scan: Scan) -> Block:
        """What scans the nest that an operator makes."""
        titled = zip(node.output, scan.columns, strict=True)  # NB: columns go by id, their names differ
        return Block([scan], [], {column.id: field for column, field in titled}, self._fold)

    def _lost(self, join: LeftJoin, predicate: Expr) -> list[Block]:
        """left − left ⋈ matches, where only what has found nothing is asked for; nothing if that gains nothing.

        As one product it is told of all values of `left` that they have no match, which is dear where few have one: as
        far as can be seen, where something is asked of the matches. One difference only: n of them are 2ⁿ products.
        """
        items = join.right.items if isinstance(join.right, Project) else ()
        found = {c.id for c, expr in items if not expr.nullable}
        rest = [c for c in conjuncts(predicate) if not _is_null_of(c, found)]
        if len(rest) == len(conjuncts(predicate)) or not _is_restricted(join.right):
            return []
        if not _is_one_product(join.left):
            return []
        every = self._unmatched(join.left, join.right, join.on)
        for block in every:
            block.compute((c, Literal(None, c.type)) for c in join.right.output)
            block.restrict(conjunction(rest))
        return drop_empty(every)

    def _defaulted(self, join: LeftJoin) -> list[Block]:
        """left ⋈ groups with defaults; nothing if that is not what `right` is"""
        found = defaulted(join, self.ids)
        if found is None:
            return []
        plan, nothing = found
        every = self.of(plan)
        for block in every:
            block.nothing |= nothing
        return every

    def _outer(self, join: LeftJoin) -> list[Block]:
        """left ⋈ right, and what of left is in no match, with NULLs beside it."""
        left, right, on = join.left, join.right, join.on
        if self._few:
            return self.of(optional(join, self.ids))
        found, lost = self.of(Join(left, right, on)), self._lonely(left, right, on)
        for block in found:
            block.compute((c, c) for c in right.output)  # not NULL here, if they are not in `right`
        for block in lost:
            block.compute((c, Literal(None, c.type)) for c in right.output)
        return drop_empty(found + lost)

    def _lonely(self, left: Node, right: Node, on: Expr) -> list[Block]:
        """What of left is in no match: that of whose values there is none."""
        matches, same = self._matches(left, right, on)
        marker = self._column(TRUE)
        marked = Project(matches, (*((c, c) for c in matches.output), (marker, TRUE)))
        lost = self._defaulted(LeftJoin(left, marked, same))
        for block in lost:
            block.restrict(is_null(marker))
        return lost or self._unmatched(left, right, on)

    def _matched(self, left: Node, right: Node, on: Expr) -> list[Block]:
        """left ⋈ Exists(matches)"""
        matches, same = self._matches(left, right, on)
        return drop_empty([join_blocks(a, b, same) for a in self.of(left) for b in self.of(matches)])

    def _unmatched(self, left: Node, right: Node, on: Expr) -> list[Block]:
        """left − left ⋈ Exists(matches)"""
        gone = self._matched(left, right, on)
        for block in gone:
            block.sign = -block.sign
        return drop_empty(self.of(left) + gone)

    def _matches(self, left: Node, right: Node, on: Expr) -> tuple[Node, Expr]:
        """What says once, of the values in `left` that `on` reads, that `right` has a match; and how it is joined.

        Where `on` only equates the two sides, that is in `right` alone; else the pairs are looked at.
        """
        ours, theirs = frozenset(c.id for c in left.output), frozenset(c.id for c in right.output)
        equal: list[tuple[str, Expr, Expr]] = []
        own: list[Expr] = []
        asked: list[Expr] = []  # of `left` alone
        for conjunct in conjuncts(on):
            match conjunct:
                case Call("=" | "<=>" as name, (a, b)) if _reads(a, ours) and _reads(b, theirs):
                    equal.append((name, a, b))
                case Call("=" | "<=>" as name, (a, b)) if _reads(a, theirs) and _reads(b, ours):
                    equal.append((name, b, a))
                case _ if {c.id for c in columns(conjunct)} <= theirs:
                    own.append(conjunct)
                case _ if {c.id for c in columns(conjunct)} <= ours:
                    asked.append(conjunct)
                case _:
                    read = sorted((c for c in columns(on) if c.id in ours), key=lambda c: c.id)
                    keys: list[tuple[Column, Expr]] = [(self._column(c), c) for c in read]
                    same = conjunction(Call("<=>", (c, key), BOOLEAN, False) for key, c in keys)
                    return Aggregate(Join(left, right, on), tuple(keys), ()), same
        if equal and not own and _unique(right) == {b.id if isinstance(b, Column) else None for _, _, b in equal}:
            return right, on
        if not equal:
            equal = [("=", TRUE, TRUE)]
        keys = [(self._column(b), b) for _, _, b in equal]
        pairs = [Call(name, (a, k), BOOLEAN, name == "=") for (name, a, _), (k, _) in zip(equal, keys, strict=True)]
        same = conjunction((*pairs, *asked))
        return Aggregate(Filter(right, conjunction(own)) if own else right, tuple(keys), ()), same

    def _column(self, of: Expr) -> Column:
        return Column(next(self.ids), of.name if isinstance(of, Column) else "x", of.type, of.nullable)


def _is_null_of(conjunct: Expr, ids: set[int]) -> bool:
    """Is it `c IS NULL` of one of those columns?"""
    match conjunct:
        case Call("is_null", (Column(id),)):
            return id in ids
    return False


def _is_restricted(node: Node) -> bool:
    """Is more asked of its rows than that something is not NULL?"""
    match node:
        case Filter(child, predicate):
            more = any(c != not_null(v) for c in conjuncts(predicate) for v in columns(c))
            return more or _is_restricted(child)
        case Project() | Aggregate() | Join():
            return any(map(_is_restricted, node.inputs))
    return False


def _is_one_product(node: Node) -> bool:
    """Scans, and aggregates of anything, joined and filtered."""
    match node:
        case Scan() | Aggregate():
            return True
        case Filter() | Project() | Join():
            return all(map(_is_one_product, node.inputs))
    return False


def _unique(node: Node) -> set[int | None]:
    """The columns of which a plan has each combination once; empty if none are known."""
    match node:
        case Aggregate(_, keys):
            return {column.id for column, _ in keys}
        case Project(child, items):
            names = {expr.id: column.id for column, expr in items if isinstance(expr, Column)}
            return {names.get(id) for id in _unique(child) if id is not None}
        case Filter(child):
            return _unique(child)
    return set()


def _reads(expr: Expr, ids: frozenset[int]) -> bool:
    """Does it read columns, and only those?"""
    return bool(columns(expr)) and {c.id for c in columns(expr)} <= ids
