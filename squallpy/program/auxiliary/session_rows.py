"""Session rows: a row for each session of a group's times, which are at most a gap apart.

N1(k, start, following, last) := Sessions_[k](M_CLICKS(k, at): at up to 5 MIN apart)
"""

from collections.abc import Mapping

from squallpy.base.records import dataclass
from squallpy.catalog.durations import format_duration
from squallpy.logical.expressions import Column, Expr
from squallpy.program.auxiliary.adjacent_pairs import PairSearch
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, fields_of_group, head_text, index_along
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref

OPEN = 2**62  # the `following` of a group's last session: a number of microseconds later than all TIMESTAMPs


@dataclass(frozen=True, slots=True)
class SessionRows(AuxiliaryKind):
    """The sessions of each group: their first time, their `last`, and the first of the `following` one, or OPEN.

    `time`, a key of the view, is the first time among the output's items; the others stand for themselves there.
    """

    time: Column
    following: Column
    last: Column
    gap: int

    @property
    def along(self) -> Columns:
        return (self.time,)

    @property
    def unsearched(self) -> Columns:
        return (self.last,)

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...]:
        return fields_of_group(keys, output)

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        return index_along(keys, self.time)

    def search(self, positions: Mapping[Expr, int]) -> PairSearch:
        own = (self.time, self.following, self.last)
        group = tuple(at for expr, at in positions.items() if expr not in own)
        return PairSearch(group, positions[self.time], positions[self.following])

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        names, own = Names(source.variables), (self.time, self.following, self.last)
        group = ", ".join(title for title, expr in output.items if expr not in own)
        what = f"{names(self.time)} up to {format_duration(self.gap)} apart"
        return f"{head_text(name, output)} := Sessions_[{group}]({source.name}({names.list(source.variables)}): {what})"

    def origin_text(self, source: str) -> str:
        return f"the sessions of {source} that changed"
