"""Adjacent pairs: the values of a group, each with the next larger or smaller one.

N3(k1, value, next) := Exists(M_QUOTES(symbol, time)) ⋈ (k1 := symbol) ⋈ (value := time) ⋈ (next := the next time)
"""

from collections.abc import Collection, Mapping

from squallpy.base.records import dataclass
from squallpy.logical.expressions import Column, Expr
from squallpy.program.auxiliary.groups import rows_text
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, fields_of_group, index_along
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class AdjacentPairs(AuxiliaryKind):
    """The values of a group, each with its neighbour: the next one `above` it, or below.

    `value` is a key of the view, `other` stands for the neighbour, NULL for none, among the output's items.
    """

    value: Column
    other: Column
    above: bool

    @property
    def relies_on_primary_key(self) -> bool:
        """True: LAG and LEAD in the order of a key take the nearest value for the row before or after."""
        return True

    @property
    def along(self) -> Columns:
        return (self.value,)

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...]:
        return fields_of_group(keys, output)

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        return index_along(keys, self.value)

    def search(self, positions: Mapping[Expr, int]) -> "PairSearch":
        group = tuple(at for expr, at in positions.items() if expr not in (self.value, self.other))
        return PairSearch(group, positions[self.value], positions[self.other])

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        neighbour = f"the {self.other.name} {Names(source.variables)(self.value)}"
        return rows_text(name, source, output, {self.other.id: neighbour})


@dataclass(frozen=True, slots=True)
class PairSearch:
    """The pair around a bound: its value is on one side of it, its neighbour on the other.

    Args:
        group, value, other: Their positions in the keys of a view with a record for each pair.
    """

    group: tuple[int, ...]
    value: int
    other: int

    method = "nearest"
    then = ()
    heights = None

    def finds(self, variables: Columns, unbound: Collection[Column], ranged: Column, ends: tuple[bool, bool]) -> bool:
        """True if the group is known, the value has one bound, and the neighbour is only read."""
        known = not any(variables[i] in unbound for i in self.group)
        return known and variables[self.other] in unbound and ranged == variables[self.value] and ends[0] != ends[1]
