"""Base class of the kinds of auxiliary relations, as compilation and printing need them.

A kind is one file here, one of the same name in `runtime/auxiliary/` with its maintainer, and a line in either registry
(`relation.AnyAuxiliaryKind`, `runtime/auxiliary/maintainer_registry.py`).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from typing import Protocol

from squallpy.base.index_order import Heights, Order
from squallpy.base.records import dataclass
from squallpy.base.types import Kind as TypeKind
from squallpy.logical.expressions import Column, Expr
from squallpy.program.auxiliary.divided_rows import DividedRows
from squallpy.program.complexity import LOG
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref

Columns = tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class GroupIndex:
    """The index that finds a group's records in a source view: a sorted index in an `order`, or a slice if `is_sliced`.

    `group`: the positions of the group in the keys of the view.
    """

    group: tuple[int, ...] = ()
    order: Order | None = None
    is_sliced: bool = False


class RowSearch(Protocol):
    """A lookup that finds one row of a group by a range, in a view with a record for each row.

    Args:
        method: The kind of lookup (`physical.plan.Lookup`).
        then: Positions in the view's keys that its sorted index compares right after the ranged one.
        heights: Which values of the first of those the index finds the highest of.
    """

    @property
    def method(self) -> str: ...
    @property
    def then(self) -> tuple[int, ...]: ...
    @property
    def heights(self) -> Heights | None: ...

    def finds(self, variables: Columns, unbound: Collection[Column], ranged: Column, ends: tuple[bool, bool]) -> bool:
        """True if `ranged`, bounded from below or above as `ends` say, leaves one record of the view.

        Args:
            variables: What stands in the place of the view's keys.
            unbound: Those of them that have no value yet.
        """
        ...


class AuxiliaryKind(ABC):
    """A kind of auxiliary relation; `keys` are the variables in the place of the source view's keys, `output` makes the
    rows of it."""

    __slots__ = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of other auxiliary relations that its rows depend on."""
        return ()

    @property
    def owns_view(self) -> bool:
        """True if the source view may not be shared with other readers."""
        return False

    @property
    def forgets_rows(self) -> bool:
        """True if it takes rows from its view as time goes."""
        return False

    @property
    def hides_rows(self) -> bool:
        """True if it has rows of its view at some times only."""
        return False

    @property
    def has_groups(self) -> bool:
        """True if rows are made group by group; else of the view as a whole, and they are few."""
        return True

    @property
    def is_divisible(self) -> bool:
        """True if the rows of a group do not depend on those of another."""
        return True

    @property
    def fan_out(self) -> float:
        """Rows that come or go for each that does in the view, as the placement of views assumes."""
        return 1.0

    def divisions(self, keys: Columns, output: OutputSpec) -> Iterator[DividedRows]:
        """Yield the ways in which partitions with copies of the view may divide its rows, the best one first."""
        yield from ()

    @property
    def relies_on_primary_key(self) -> bool:
        """True if a value of the view stands for the one row that has it by a PRIMARY KEY, which is then checked."""
        return False

    @property
    def along(self) -> Columns:
        """Keys of the view by which a group is ordered: partitioning by one of them would split groups."""
        return ()

    @property
    def unsearched(self) -> Columns:
        """Items of the output that a view may lack in which `search` finds a row."""
        return ()

    @abstractmethod
    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...] | None:
        """Return a key that is unique whatever the data; None if there is none."""

    @abstractmethod
    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        """Return the index of the source view that its rows are found with."""

    def cost(self, keys: Columns, output: OutputSpec) -> str:
        """Return the cost mark of the rows of a group that a batch touched."""
        return LOG

    def search(self, positions: Mapping[Expr, int]) -> RowSearch | None:
        """Return how one row is found by a range in a view of rows.

        Args:
            positions: Where the view's keys hold each item of the output.
        """
        return None

    @abstractmethod
    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        """Return the definition of its rows in terms of the source view, for EXPLAIN."""

    def delta_text(self, name: str, source: Ref) -> str:
        """Return the definition of its change: old and new rows of the groups that changed, their domain (§3.2.2)."""
        return delta_of_groups(name, source, source.variables)

    def origin_text(self, source: str) -> str:
        """Return where its change comes from, for EXPLAIN's stages."""
        return f"the groups of {source} that changed"


def delta_of_groups(name: str, source: Ref, group: Columns) -> str:
    """Return ΔN1 := Dom_[b](ΔM_R) ⋈ (N1[M_R + ΔM_R] − N1[M_R]), b the group."""
    keys = Names(source.variables).list(group)
    domain = f"Dom_[{keys}](Δ{source.name}) ⋈ " if keys else ""
    return f"Δ{name} := {domain}({name}[{source.name} + Δ{source.name}] − {name}[{source.name}])"


def head_text(name: str, output: OutputSpec) -> str:
    """Return name and fields: N1(k, at, value)."""
    return f"{name}({', '.join(title for title, _ in output.items)})"


def fields_of_group(keys: Columns, output: OutputSpec, without: Collection[Column] = ()) -> tuple[str, ...]:
    """Return the fields that are keys of the view, but those `without`, or number a group's rows."""
    group = {*keys} - (output.beside | {*without})
    return tuple(title for title, expr in output.items if expr in group or expr == output.number)


def index_along(keys: Columns, *along: Column) -> GroupIndex:
    """Return the sorted index by all other keys, and then by those `along`."""
    last = tuple(keys.index(column) for column in along)
    group = tuple(i for i in range(len(keys)) if i not in last)
    return GroupIndex(group, Order((*group, *last), len(group), real=is_double(along[0])))


def is_double(column: Column) -> bool:
    """True if a column holds doubles, which sorted indexes compare in their own way."""
    return column.type.kind is TypeKind.DOUBLE
