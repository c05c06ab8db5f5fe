"""Threshold intervals, in which a running aggregate exists and satisfies predicates, instead of its value per point.

N4(low, high) := Intervals_[p](Exists(F(p)) ⋈ (0.25 * N1.total > SUM(v)))
  with F(p) := Sum(M_BIDS(x) ⋈ (x > p))
"""

from dataclasses import replace

from squallpy.base.index_order import Order
from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr, substitute
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, delta_of_groups, head_text, is_double
from squallpy.program.output_spec import OutputSpec
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class ThresholdIntervals(AuxiliaryKind):
    """The intervals of p in which Sum(view(x) ⋈ (x op p)) satisfies `predicates`, for each `group` of the view.

    A row has the ends of an interval, NULL for none. `predicates` reads the output's measures and variables of the
    `context`: each with the auxiliary relation, of one row, and the field that it stands for. `total`: a sum of nothing
    counts too.
    """

    x: Column
    op: str
    predicates: tuple[Expr, ...]
    context: tuple[tuple[Column, str, str], ...]
    total: bool
    group: Columns = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """Names of the relations of the `context`, one for each of its variables."""
        return tuple(name for _, name, _ in self.context)

    @property
    def has_groups(self) -> bool:
        return bool(self.group)

    def unique_key(self, keys: Columns, output: OutputSpec) -> None:
        return None

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        """Return a sorted index by group and x that knows between which values its prefix sums are."""
        group, down = tuple(keys.index(column) for column in self.group), self.op in (">", ">=")
        order = Order((*group, keys.index(self.x)), len(group), real=is_double(self.x), descending=down, extents=True)
        return GroupIndex(group, order)

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        group = "".join(f"{column.name}, " for column in self.group)
        x = self.x.name
        context: dict[int, Expr] = {c.id: replace(c, name=f"{of.upper()}.{title}") for c, of, title in self.context}
        terms = [
            *([] if self.total else [f"Exists(F({group}p))"]),
            *(f"({substitute(predicate, context)})" for predicate in self.predicates),
        ]
        running_sum = f"F({group}p) := Sum({source.name}({group}{x}) ⋈ ({x} {self.op} p))"
        return f"{head_text(name, output)} := Intervals_[p]({' ⋈ '.join(terms)})\n  with {running_sum}"

    def delta_text(self, name: str, source: Ref) -> str:
        return delta_of_groups(name, source, self.group)
