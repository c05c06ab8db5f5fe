"""Range-extreme spans: for each x of a group the highest value, and the span of x in which it is the highest.

N3(k1, at, value, before, behind) := Spans_[k1](M_QUOTES(symbol, time, bid): the greatest bid around a time)

Source: the Cartesian tree of Vuillemin, *A Unifying Look at Data Structures*, CACM 1980: a subtree is a span.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace

from squallpy.base.index_order import Heights
from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr
from squallpy.program.auxiliary.kind import (
    AuxiliaryKind,
    Columns,
    GroupIndex,
    fields_of_group,
    head_text,
    index_along,
    is_double,
)
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class RangeExtremeSpans(AuxiliaryKind):
    """The extreme value of each group and x, with the nearest x `before` and `behind` whose value beats it, or NULL.

    `great`: the greatest value, otherwise the least. x and value are keys of the view; the ends stand for themselves
    among the output's items. Among equal values the first wins; NULL is the lowest.
    """

    x: Column
    value: Column
    before: Column
    behind: Column
    great: bool

    @property
    def along(self) -> Columns:
        return (self.x, self.value)

    @property
    def heights(self) -> Heights:
        """The order of values by which one is higher than another."""
        return Heights(self.great, real=is_double(self.value))

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...]:
        return fields_of_group(keys, output, without=(self.value,))

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        """Return a sorted index that finds the values at one x."""
        group, order = (found := index_along(keys, *self.along)).group, found.order
        assert order is not None
        return GroupIndex(group, replace(order, equal=len(group) + 1, real=is_double(self.value)))

    def search(self, positions: Mapping[Expr, int]) -> "SpanSearch":
        own = (self.x, self.value, self.before, self.behind)
        group = tuple(at for expr, at in positions.items() if expr not in own)
        return SpanSearch(group, positions[self.x], positions[self.value], self.heights)

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        names, own = Names(source.variables), (self.x, self.value, self.before, self.behind)
        group = ", ".join(title for title, expr in output.items if expr not in own)
        what = f"the {'greatest' if self.great else 'least'} {names(self.value)} around a {names(self.x)}"
        return f"{head_text(name, output)} := Spans_[{group}]({source.name}({names.list(source.variables)}): {what})"


@dataclass(frozen=True, slots=True)
class SpanSearch:
    """The span of the highest value between two bounds of x: the one that reaches beyond both.

    Args:
        group, x, value: Their positions in the keys of a view with a record for each span.
    """

    group: tuple[int, ...]
    x: int
    value: int
    heights: Heights

    method = "highest"

    @property
    def then(self) -> tuple[int, ...]:
        return (self.value,)

    def finds(self, variables: Columns, unbound: Collection[Column], ranged: Column, ends: tuple[bool, bool]) -> bool:
        """True if the group is known, x has both bounds, and all other columns are only read."""
        known = not any(variables[i] in unbound for i in self.group)
        all_else = len(unbound) == len(variables) - len(self.group)
        return known and all_else and ranged == variables[self.x] and all(ends)
