"""Plans → sums of select-project-join blocks: joins multiply them, unions and outer joins add them."""

from collections.abc import Callable, Iterator

from squallpy.catalog.relation import WORKING, Relation
from squallpy.logical.expressions import Expr, Literal
from squallpy.logical.factorised import Factorised
from squallpy.logical.first_rows import FirstRows
from squallpy.logical.join_matches import distinct_matches
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
from squallpy.logical.recursion import Recursion
from squallpy.logical.session_windows import SessionBounds
from squallpy.maintain.lowering.auxiliary import AuxiliaryRelations
from squallpy.maintain.lowering.block import SpjBlock, drop_empty, join_blocks


class SumOfBlocks:
    """Lowers plans to sums of select-project-join blocks, and collects their relations and auxiliary relations."""

    def __init__(self, ids: Iterator[int], fold: Callable[[Expr], Expr], iterations: int) -> None:
        """Begin without any; `fold` simplifies expressions, `iterations` are the most of a recursive query."""
        self.ids, self._fold = ids, fold
        self.relations: dict[str, Relation] = {}
        self.auxiliary = AuxiliaryRelations(ids, self.relations, self.of, iterations)
        self._memo: dict[int, tuple[Node, list[SpjBlock]]] = {}  # by id, of nodes kept alive

    def of(self, node: Node) -> list[SpjBlock]:
        """Lower a plan to blocks, which the caller may change. One that is read twice is lowered once."""
        if id(node) not in self._memo:
            self._memo[id(node)] = node, self._of(node)
        return [block.copy() for block in self._memo[id(node)][1]]

    def _of(self, node: Node) -> list[SpjBlock]:
        match node:
            case Scan(relation):
                if relation.format != WORKING and all(aux.relation is not relation for aux in self.auxiliary.relations):
                    self.relations[relation.name] = relation
                return [SpjBlock([node], [], {}, self._fold)]
            case Filter(child, predicate):
                blocks = self.of(child)
                for block in blocks:
                    block.restrict(predicate)
                return drop_empty(blocks)
            case Project(child, items):
                blocks = self.of(child)
                for block in blocks:
                    block.compute(items)
                return blocks
            case Join(left, right, on):
                ours, theirs = self.of(left), self.of(right)
                return drop_empty([join_blocks(a, b, on) for a in ours for b in theirs])
            case LeftJoin(left, right, on):
                return self._outer_join(left, right, on)
            case SemiJoin(left, right, on):
                return self._semi_join(left, right, on)
            case AntiJoin(left, right, on):
                return self._anti_join(left, right, on)
            case Union(children, columns):
                blocks = []
                for child in children:
                    mine = self.of(child)
                    for block in mine:
                        block.compute(zip(columns, child.output, strict=True))
                    blocks += mine
                return drop_empty(blocks)
            case Window():
                return [self._of_auxiliary(node, self.auxiliary.of_window(node))]
            case SessionBounds():
                return [self._of_auxiliary(node, self.auxiliary.of_sessions(node))]
            case FirstRows():
                return [self._of_auxiliary(node, self.auxiliary.of_first_rows(node))]
            case Sort(child):
                return self.of(child)  # NB: an ORDER BY inside a view or derived table has no effect
            case Factorised():
                return [self._of_auxiliary(node, self.auxiliary.of_factorised(node))]
            case Recursion():
                return [self._of_auxiliary(node, self.auxiliary.of_recursion(node))]
            case Aggregate() | Repeat():
                return [self._of_auxiliary(node, self.auxiliary.of_groups(node))]
        raise AssertionError(f"the binder let {type(node).__name__} below a join")

    def _of_auxiliary(self, node: Node, scan: Scan) -> SpjBlock:
        """Scan the auxiliary relation that an operator makes."""
        titled = zip(node.output, scan.columns, strict=True)  # NB: columns are equal by id; their names may differ
        return SpjBlock([scan], [], {column.id: field for column, field in titled}, self._fold)

    def _outer_join(self, left: Node, right: Node, on: Expr) -> list[SpjBlock]:
        """Lower an outer join: left ⋈ right, and the rows of left without a match, with NULLs."""
        found, lost = self.of(Join(left, right, on)), self._anti_join(left, right, on)
        for block in found:
            block.compute((c, c) for c in right.output)  # not NULL here, if they are not in `right`
        for block in lost:
            block.compute((c, Literal(None, c.type)) for c in right.output)
        return drop_empty(found + lost)

    def _semi_join(self, left: Node, right: Node, on: Expr) -> list[SpjBlock]:
        """Lower a semi join: left ⋈ Exists(matches)"""
        matches, same = distinct_matches(left, right, on, self.ids)
        return drop_empty([join_blocks(a, b, same) for a in self.of(left) for b in self.of(matches)])

    def _anti_join(self, left: Node, right: Node, on: Expr) -> list[SpjBlock]:
        """Lower an anti join: left − left ⋈ Exists(matches)"""
        gone = self._semi_join(left, right, on)
        for block in gone:
            block.sign = -block.sign
        return drop_empty(self.of(left) + gone)
