"""Window rows: the rows of a stream that are in its window.

N1(a, ts) := W_N1(a, ts) ⋈ (ts IN RANGE 5 MIN BY s.ts − 2 SEC)
"""

from squallpy.base.index_order import Order
from squallpy.base.records import dataclass
from squallpy.catalog.durations import format_duration
from squallpy.catalog.window_spec import Clock, NowExtent, WindowSpec
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, head_text
from squallpy.program.output_spec import OutputSpec
from squallpy.program.variable_names import Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class WindowRows(AuxiliaryKind):
    """The rows of its view that a `window` shows; those that it has passed are taken out of the view."""

    window: WindowSpec

    @property
    def owns_view(self) -> bool:
        return True

    @property
    def forgets_rows(self) -> bool:
        return True

    @property
    def hides_rows(self) -> bool:
        return self.window.is_ahead

    def unique_key(self, keys: Columns, output: OutputSpec) -> None:
        return None

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        """Return a sorted index by time."""
        time = next(i for i, key in enumerate(keys) if (self.window.field, key) in output.items)
        others = tuple(i for i in range(len(keys)) if i != time)
        return GroupIndex(order=Order((time, *others), 0))

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        window, variables = self.window, Names(source.variables).list(source.variables)
        if isinstance(window.frame, NowExtent):
            shown = " ⋈ ".join(f"({condition})" for condition in window.frame.conditions(window.field))
            return f"{head_text(name, output)} := {source.name}({variables}) ⋈ {shown}"
        clocks = ", ".join(map(_clock_text, window.clocks))
        shown = f"({window.field} IN {window.frame} BY {clocks})"
        return f"{head_text(name, output)} := {source.name}({variables}) ⋈ {shown}"

    def delta_text(self, name: str, source: Ref) -> str:
        if isinstance(self.window.frame, NowExtent):
            return f"Δ{name} := Δ{source.name} + what NOW() has reached − what it has left behind"
        return f"Δ{name} := Δ{source.name} − what falls out of {self.window.frame}"

    def origin_text(self, source: str) -> str:
        if isinstance(self.window.frame, NowExtent):
            return f"{source}, and the rows that NOW() has reached or left behind"
        return f"{source}, less what falls out of {self.window.frame}"


def _clock_text(clock: Clock) -> str:
    """Write a clock: r.ts − 2 SEC"""
    delay = f" − {format_duration(clock.delay)}" if clock.delay else ""
    return f"{clock.name}{delay}{' (timed)' if clock.is_timed else ''}"
