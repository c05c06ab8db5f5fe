"""Select-project-join blocks: a lowered plan is a sum of them."""

from collections.abc import Callable, Iterable
from functools import cache

from squallpy.base.records import dataclass
from squallpy.logical.constant_folding import Evaluate, fold_constant
from squallpy.logical.expressions import TRUE, Call, Column, Expr, Literal, Rewriter, conjuncts, not_null, substitute
from squallpy.logical.nodes import Scan
from squallpy.logical.null_folding import fold_null
from squallpy.optimizer.plan.groupjoin import EmptyGroups, without_case


@dataclass(slots=True)
class SpjBlock:
    """A select-project-join block: its scans, its conjuncts and the columns that projections computed.

    A plan is a sum of blocks; one with `sign` −1 is taken away. `fold` simplifies expressions.
    """

    scans: list[Scan]
    conjuncts: list[Expr]
    computed: dict[int, Expr]
    fold: Callable[[Expr], Expr]
    sign: int = 1

    def inline(self, expr: Expr) -> Expr:
        """Replace columns by what computes them."""
        if isinstance(expr, Column):
            return self.computed.get(expr.id, expr)
        if isinstance(expr, Literal):
            return expr
        return self.fold(substitute(expr, self.computed))

    def compute(self, new: Iterable[tuple[Column, Expr]]) -> None:
        """Add computed columns."""
        self.computed |= {column.id: self.inline(expr) for column, expr in new}

    def restrict(self, predicate: Expr) -> None:
        blocks = dict.fromkeys((*self.conjuncts, *(_simplify_conjunct(self.inline(c)) for c in conjuncts(predicate))))
        self.conjuncts = [c for c in blocks if c != TRUE]

    def copy(self) -> "SpjBlock":
        """Copy the block, to be restricted on its own."""
        parts = list(self.scans), list(self.conjuncts), dict(self.computed)
        return SpjBlock(*parts, self.fold, self.sign)

    @property
    def empty(self) -> bool:
        """No row is let through, whatever is there."""
        return any(isinstance(c, Literal) and not c.value for c in self.conjuncts)


def join_blocks(a: SpjBlock, b: SpjBlock, on: Expr | None) -> SpjBlock:
    """Join two blocks; `on` None is the cross product."""
    scans, computed = a.scans + b.scans, a.computed | b.computed
    block = SpjBlock(scans, a.conjuncts + b.conjuncts, computed, a.fold, a.sign * b.sign)
    if on is not None:
        block.restrict(on)
    return block


def _simplify_conjunct(conjunct: Expr) -> Expr:
    """Simplify a conjunct, for which NULL is FALSE: x = x → NOT x IS NULL"""
    match conjunct:
        case Call("=", (a, b)) if a == b:
            return not_null(a)
    return conjunct


def drop_empty(blocks: list[SpjBlock]) -> list[SpjBlock]:
    """Drop the blocks without rows, but keep one, as a view has at least one."""
    return [block for block in blocks if not block.empty] or blocks[:1]


def fold_with(evaluate: Evaluate | None, empty_groups: EmptyGroups) -> Callable[[Expr], Expr]:
    """Make the function that folds NULLs in expressions, and constants if something can `evaluate` them.

    Args:
        empty_groups: The values of groups that have no row, by the column that counts the rows of a group.
    """
    computed = cache(fold_constant(evaluate)) if evaluate else None

    def folded(expr: Expr) -> Expr | None:
        value = computed(expr) if computed else None
        return fold_null(expr if value is None else value) or value

    fold = Rewriter(folded)
    return lambda expr: without_case(fold(expr), empty_groups)
