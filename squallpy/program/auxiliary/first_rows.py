"""First rows: the first n rows of each group in an order, numbered.

N1(k, x, number) := First 3_[k](M_R(k, x) by x DESC)
"""

from squallpy.base.index_order import Order
from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.logical.first_rows import ColumnOrder
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, head_text, is_double
from squallpy.program.complexity import LOG, SLICE
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class FirstRowsOfGroups(AuxiliaryKind):
    """The first `count` rows of each group.

    `group` and `order` are keys of the view; `number` stands for itself among the output's items.
    """

    group: Columns
    order: ColumnOrder
    others: Columns
    count: int
    number: Column

    @property
    def sorting(self) -> ColumnOrder:
        """The columns by which the rows of a group are ordered, without ties."""
        own = {column for column, _, _ in self.order}
        return (*self.order, *((column, False, True) for column in self.others if column not in own))

    @property
    def is_indexed(self) -> bool:
        """True if a sorted index has the rows of a group in the order of their first key."""
        return self.sorting[0][0].type.is_ordered

    @property
    def along(self) -> Columns:
        return tuple(column for column, _, _ in self.sorting)

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...]:
        return tuple(title for title, expr in output.items if expr in self.group or expr == self.number)

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        group, last = (tuple(keys.index(c) for c in some) for some in (self.group, self.along))
        if not self.is_indexed:
            return GroupIndex(group, is_sliced=True)
        first, down, _ = self.sorting[0]
        order = Order((*group, *last), len(group), real=is_double(first), descending=down)
        return GroupIndex(group, order)

    def cost(self, keys: Columns, output: OutputSpec) -> str:
        return LOG if self.is_indexed else SLICE

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        names = Names(source.variables)
        group = ", ".join(map(names, self.group))
        order = ", ".join(names(c) + (" DESC" if down else "") for c, down, _ in self.order)
        rows = f"{source.name}({names.list(source.variables)})"
        return f"{head_text(name, output)} := First {self.count}_[{group}]({rows} by {order})"
