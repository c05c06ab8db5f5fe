"""Skyline: for each group the values that exceed all values before them.

N3(k1, at, value) := Skyline_[k1](M_QUOTES(symbol, time, bid): no bid as great before a time)

Source: Börzsönyi, Kossmann and Stocker, *The Skyline Operator*, ICDE 2001.
"""

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, fields_of_group, head_text, index_along
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class Skyline(AuxiliaryKind):
    """The (x, value) pairs of each group such that no x before has a value as `great`, or as small.

    Both are keys of the view; `rising`: the least x comes first.
    """

    x: Column
    value: Column
    rising: bool
    great: bool

    @property
    def along(self) -> Columns:
        return (self.x, self.value)

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...]:
        return fields_of_group(keys, output, without=(self.value,))

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        return index_along(keys, *self.along)

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        names = Names(source.variables)
        group = ", ".join(title for title, expr in output.items if expr not in self.along)
        order = "before" if self.rising else "behind"
        what = f"no {names(self.value)} as {'great' if self.great else 'small'} {order} a {names(self.x)}"
        rows = f"{source.name}({names.list(source.variables)})"
        return f"{head_text(name, output)} := Skyline_[{group}]({rows}: {what})"
