"""The delta of the least and greatest values of groups, printed: one call finds what they were and are.

ΔN1 from the groups of M_R(k, v), MAX v

    advance_extremes(…)                         what changed: group → state before, state now
    for record in range(count_of(changed)):
        for half in range(2):
            …
            add −1, then 1, to ΔN1
"""

from squallpy.base.keys import null_of
from squallpy.base.records import dataclass
from squallpy.base.rings import Payload
from squallpy.base.types import Kind
from squallpy.codegen.derivations import FIRST, SOURCE, STEPS, SUMS, TOUCHED, DerivationCode, DerivationPrinter
from squallpy.codegen.expressions import print_key, print_text
from squallpy.codegen.names import Lines, NotCompilable, constant
from squallpy.codegen.values import Text, Value
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.views import View

ENDS = ("min", "max")


def check_extremes(aux: AuxiliaryPlan) -> None:
    """Raise NotCompilable unless rows are made of the least and greatest values of groups, found in an index."""
    output, over = aux.output, aux.output.aggregated_key
    if not isinstance(aux.kind, Groups) or over is None:
        raise NotCompilable(f"rows of {type(aux.kind).__name__}")
    if output.having or output.times or output.repeat or output.number:
        raise NotCompilable("rows that are repeated, or there only if a predicate is TRUE")
    for measure in output.measures:
        if measure.function not in ENDS:
            raise NotCompilable(f"{measure.function.upper()} of a group")
    if aux.order < 0 or over.type.kind is Kind.VARCHAR or aux.source.is_ordered:
        raise NotCompilable(f"extremes of {over}, which are in no order")


def print_extremes(relation: str, delta: View, payload: Payload, aux: AuxiliaryPlan, function: str) -> DerivationCode:
    """Print the function that computes a delta of the extremes of groups; raises NotCompilable."""
    check_extremes(aux)
    return ExtremesDerivation(delta, payload, function, aux=aux, relation=relation).derivation()


@dataclass
class ExtremesDerivation(DerivationPrinter):
    """Prints the function that computes a delta of the extremes of groups.

    Where it has no answer, nothing was changed: what it brings up to date cannot be done twice.
    """

    @property
    def _room(self) -> int:
        return 0

    def _word(self, column: Column) -> str:
        """Print the word of a field: a key of the group, or an extreme."""
        item = self._item(column)
        if not isinstance(item, Column) or item.type != column.type:
            raise NotCompilable(f"{item}")
        if item in self.aux.grouped:
            return f"load(group, {self.aux.grouped.index(item)})"
        lanes = [measure.column for measure in self.aux.output.measures]
        if item not in lanes:
            raise NotCompilable(f"{item}")
        word = f"load(payload, {1 + lanes.index(item)})"
        return f"({word} if load(payload, 0) != 0 else {constant(null_of(item.type))})"

    def _key(self, key: Column) -> str:
        return self._word(key) if key.id in self._fields else super()._key(key)

    def _load_text(self, column: Column) -> Text:
        return print_text(column, self._word(column), self._row)

    def _load(self, column: Column) -> Value:
        word = self.names(column.name)
        self.body(f"{word} = {self._word(column)}")
        # NB: where values are too wide for their order, the function ends before
        return print_key(column, word, self._row, in_order=self._item(column) not in self.aux.grouped)

    def _text(self) -> str:
        if any("fits &=" in line for line in self.body.lines):
            raise NotCompilable(f"{self.delta.name}, which may have no answer in 64 bits")
        return super()._text()

    def _head(self, lines: Lines) -> None:
        lines(f'"""Compute {self.delta.name} of the groups of {self.aux.source.name}; −1: no answer, −2: no memory."""')
        lines(f"steps, changed = load(given, {STEPS}), frame_at(load(given, {TOUCHED}))")
        lines(f"sums, first = frame_at(load(given, {SUMS})), load(given, {FIRST})")
        lines("key = key_room(sums)")

    def _rows(self, lines: Lines) -> None:
        width, broad, single = len(self.aux.grouped), 1 + len(self.aux.output.measures), self.aux.output.single
        lines(f"found = advance_extremes(load(given, {SOURCE}), steps, first) if count_of(changed) == 0 else 0")
        lines("if found < 0:")
        lines("    return found")
        lines("for record in range(count_of(changed)):")
        lines(f"    group, old = key_of(changed, record, {width}), words_of(changed, record, {2 * broad + 1})")
        if not single:
            moved = [f"load(old, {i}) != load(old, {broad + i})" for i in range(1, broad)]
            both = f"(load(old, 0) != 0) != (load(old, {broad}) != 0)"
            lines(f"    if not ({' or '.join([both, *moved])}):")
            lines("        continue")
        lines("    for half in range(2):")
        lines(f"        payload = old + {8 * broad} * half")
        lines(f"        if {'half == 0 and first != 0' if single else 'load(payload, 0) == 0'}:")
        lines("            continue")
        lines("        times, fits = 2 * half - 1, 1")
