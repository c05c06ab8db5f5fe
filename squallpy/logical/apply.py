"""Subqueries in a logical plan: Apply, and the outer columns that a subquery reads.

SELECT a FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.k = r.k)
→  Filter found IS NOT NULL (Apply EXISTS found (Scan r, Filter k = outer(k) (Domain × Scan s)))
"""

from collections.abc import Iterator
from dataclasses import field
from enum import Enum

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.base.types import BOOLEAN
from squallpy.logical.cached_properties import CachedProperty
from squallpy.logical.expressions import TRUE, Column, Expr, as_nullable
from squallpy.logical.nodes import Node, check, check_all


class Domain(Node):
    """The columns that a correlated subquery reads from around it, by the expressions there; a leaf of its plan.

    The subquery is evaluated for each of their distinct values (Neumann, Kemper, "Unnesting Arbitrary Queries").
    """

    lends = True

    def __init__(self) -> None:
        self.columns: dict[Expr, Column] = {}

    @property
    def output(self) -> tuple[Column, ...]:
        return tuple(self.columns.values())


def domains(plan: Node) -> Iterator[Domain]:
    """Yield the domains over which a subquery stands, those of its own subqueries aside."""
    seen, pending = {id(plan)}, [plan]
    while pending:
        node = pending.pop()
        if isinstance(node, Domain):
            yield node
        for child in node.open_inputs if node.borrows else ():
            if id(child) not in seen:
                seen.add(id(child))
                pending.append(child)


class ApplyKind(Enum):
    """The result of an Apply for a row of its left input, given the rows of the subquery for which `on` is TRUE."""

    CROSS = "CROSS"  # the left row with each row of the subquery
    LEFT = "LEFT"  # the same, or with NULLs if there is none
    SEMI = "SEMI"  # the left row, if the subquery has a row
    ANTI = "ANTI"  # the left row, if it has none
    EXISTS = "EXISTS"  # the left row with TRUE if it has a row, NULL if not
    MARK = "MARK"  # the left row with TRUE if it has a row, else with NULL if `on` is NULL for one, else with FALSE
    SCALAR = "SCALAR"  # the left row with the value of its only row and TRUE, or NULLs; it never has two rows
    SINGLE = "SINGLE"  # the same for a subquery that may have several rows, which is an error at run time

    @property
    def keeps_rows(self) -> bool:
        """True if no row of the left input is lost."""
        return self not in (ApplyKind.CROSS, ApplyKind.SEMI, ApplyKind.ANTI)

    @property
    def makes_pairs(self) -> bool:
        """True if a row of the left input may come several times."""
        return self in (ApplyKind.CROSS, ApplyKind.LEFT)


@dataclass(frozen=True, slots=True)
class Apply(Node):
    """A subquery evaluated for each row of `left`, columns of which it may read.

    Source: Galindo-Legaria, Joshi, "Orthogonal Optimization of Subqueries and Aggregation", SIGMOD 2001.

    Args:
        parameters: The columns of the Domain under `right`, with the expressions over `left` that they stand for.
        on: A condition on the rows; of MARK comparisons of values of `left` with columns of `right`, joined by AND.
        made: The columns that it adds: of EXISTS and MARK the mark, of SCALAR and SINGLE the value and the mark of a
            row.
        span: The place of the subquery, for errors.
        text: The subquery as written, for the error of a SINGLE one.
    """

    input_fields = ("left", "right")
    left: Node
    right: Node
    kind: ApplyKind
    parameters: tuple[tuple[Column, Expr], ...] = ()
    on: Expr = TRUE
    outputs: tuple[Column, ...] = ()
    span: Span | None = field(default=None, compare=False)
    text: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        marks = {ApplyKind.EXISTS: 1, ApplyKind.MARK: 1, ApplyKind.SCALAR: 2, ApplyKind.SINGLE: 2}
        assert len(self.outputs) == marks.get(self.kind, 0) and self.on.type == BOOLEAN
        check_all((expr for _, expr in self.parameters), self.left)
        check(self.on, self.left, self.right)
        given = {column for column, _ in self.parameters}
        assert all(given.issuperset(domain.output) for domain in domains(self.right)), "a column that is no parameter"

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        match self.kind:
            case ApplyKind.CROSS:
                return (*self.left.output, *self.right.output)
            case ApplyKind.LEFT:
                return (*self.left.output, *map(as_nullable, self.right.output))
        return (*self.left.output, *self.outputs)

    @property
    def open_inputs(self) -> tuple[Node, ...]:
        return (self.left,)
