"""Groups: rows made of one group of a view each, such as those of a nested aggregate, DISTINCT or EXISTS.

N1(b, count) := Exists(M_R(b)) ⋈ (count := M_R.0)
"""

from collections.abc import Mapping

from squallpy.base.index_order import Order
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT
from squallpy.logical.expressions import Column, Expr, substitute
from squallpy.program.auxiliary.kind import AuxiliaryKind, Columns, GroupIndex, fields_of_group, head_text, is_double
from squallpy.program.complexity import ALL, LOG, ONE, SLICE
from squallpy.program.output_spec import Measure, OutputSpec
from squallpy.program.variable_names import WIDTH, Names
from squallpy.program.views import Ref


@dataclass(frozen=True, slots=True)
class Groups(AuxiliaryKind):
    """A row for each group, or as many as `output` repeats it: of its sums, or, `over` a key, of that key's values."""

    def unique_key(self, keys: Columns, output: OutputSpec) -> tuple[str, ...]:
        return fields_of_group(keys, output)

    def index(self, keys: Columns, output: OutputSpec) -> GroupIndex:
        if output.aggregated_key is None:
            return GroupIndex()
        printed = {expr for _, expr in output.items}
        group = tuple(i for i, key in enumerate(keys) if key in printed)
        value = keys.index(output.aggregated_key)
        if value in group or not output.aggregated_key.type.is_ordered or any(m.is_folded for m in output.measures):
            return GroupIndex(group, is_sliced=True)
        return GroupIndex(group, Order((*group, value), len(group), real=is_double(output.aggregated_key)))

    def cost(self, keys: Columns, output: OutputSpec) -> str:
        """Return the mark of one lookup of sums, of the next extreme in a sorted index, or of reading all values.

        Percentiles of values too wide for an order need all of them.
        """
        if output.aggregated_key is None:
            return ONE
        index = self.index(keys, output)
        is_placed = any(m.fraction is not None for m in output.measures)
        if index.order is not None and not (is_placed and output.aggregated_key.type.is_wide):
            return LOG
        return SLICE if index.group else ALL

    def text(self, name: str, source: Ref, output: OutputSpec) -> str:
        names = Names(source.variables)
        measures = {
            m.column.id: _value_text(m, names(output.aggregated_key), names)
            if output.aggregated_key
            else m.text(source.name)
            for m in output.measures
        }
        return rows_text(name, source, output, measures)


def rows_text(name: str, source: Ref, output: OutputSpec, values: Mapping[int, str]) -> str:
    """Return the definition of a row for each group of a view.

    Args:
        values: The texts of columns of the output that are no keys, by id.
    """
    names = Names(source.variables)
    spelled: dict[int, Expr] = {id: Column(id, text, BIGINT) for id, text in values.items()}
    fields = []
    for title, expr in output.items:
        text = names.expr(substitute(expr, spelled))
        fields.append(f"({title} := {text})" if text != title else "")
    groups = f"Exists({source.name}({names.list(source.variables)}))"
    times = [f"⟨{substitute(output.times, spelled)}⟩"] if output.times is not None else []
    if output.number is not None:
        times = [f"({output.number} < {substitute(output.times, spelled)})"] if output.times is not None else []
    terms = [*([] if output.single else [groups]), *filter(None, fields), *times]
    line = f"{head_text(name, output)} := {' ⋈ '.join(terms)}"
    return line if len(line) <= WIDTH else f"{head_text(name, output)} :=\n    " + "\n      ⋈ ".join(terms)


def _value_text(measure: Measure, over: str, names: Names) -> str:
    """Write the aggregates of values: MIN x, BELOW 1/2 x, LISTAGG ', ' x BY y DESC."""
    details = "" if measure.fraction is None else f"{measure.fraction} "
    details += "" if measure.separator is None else f"{measure.separator!r} "
    keys = ", ".join(f"{names(key)}{' DESC' if down else ''}" for key, down, _ in measure.order)
    return f"{measure.function.upper()} {details}{over}{' BY ' if keys else ''}{keys}"
