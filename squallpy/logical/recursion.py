"""Recursive queries in a logical plan: WITH RECURSIVE.

WITH RECURSIVE reach AS (SELECT x, y FROM edge UNION SELECT r.x, e.y FROM reach r JOIN edge e ON r.y = e.x)

Recursion reach (x, y) by union of
  Union all (Scan edge,  Project x, y (Join (Recursive reach, Scan edge)))
"""

from dataclasses import field
from enum import Enum

from squallpy.base.errors import Span
from squallpy.base.records import dataclass
from squallpy.catalog.relation import WORKING, Relation
from squallpy.logical.cached_properties import CachedProperty
from squallpy.logical.expressions import Column
from squallpy.logical.nodes import Node, NodeByPosition, Scan, nodes


class Growth(Enum):
    """The rows that an iteration adds to a recursive table."""

    UNION = "union"  # those that it has not yet: the least fixpoint
    UNION_ALL = "union all"  # all: the next iteration reads only these
    MIN = "min"  # for each key a value less than the one that it has
    MAX = "max"

    @property
    def is_extreme(self) -> bool:
        """True if it has one value for each key."""
        return self in (Growth.MIN, Growth.MAX)


@dataclass(frozen=True, slots=True)
class RecursiveTable:
    """A query of WITH RECURSIVE that reads itself.

    Args:
        relation: The working table, which the query's own text reads.
        value: The position of the column of MIN or MAX; −1 for others.
    """

    relation: Relation
    growth: Growth
    value: int = -1

    def __post_init__(self) -> None:
        assert self.relation.format == WORKING and self.growth.is_extreme == (self.value >= 0)


@dataclass(frozen=True, slots=True)
class Recursion(NodeByPosition):
    """The fixpoint of queries that read each other.

    Args:
        tables: The recursive tables; the rows of each are derived by the child at its place.
        columns: Those of all tables, one after the other, after the number of a row's table if there are several;
            the columns of other tables are then NULL.
        span: The place of the first table's name, for errors.
    """

    children: tuple[Node, ...]
    tables: tuple[RecursiveTable, ...]
    columns: tuple[Column, ...]
    span: Span | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        fields = [f.type for table in self.tables for f in table.relation.fields]
        assert fields == [c.type for c in self.columns[len(self.tables) > 1 :]]
        for child, table in zip(self.children, self.tables, strict=True):
            assert [c.type for c in child.output] == [f.type for f in table.relation.fields]

    @CachedProperty
    def output(self) -> tuple[Column, ...]:
        return self.columns

    def columns_of(self, place: int) -> tuple[Column, ...]:
        """Return the columns of the table at a place."""
        start = (len(self.tables) > 1) + sum(len(table.relation.fields) for table in self.tables[:place])
        return self.columns[start : start + len(self.tables[place].relation.fields)]


def reads_working_table(plan: Node, names: frozenset[str]) -> bool:
    """True if a plan reads one of these working tables."""
    return any(isinstance(n, Scan) and n.relation.format == WORKING and n.relation.name in names for n in nodes(plan))
