"""The delta of a model's rows, printed: the cells of the cofactor matrices that a batch touched go, and come anew.

Other models are solved in Python: their functions have no answer where a group was touched.
"""

from dataclasses import field
from typing import ClassVar

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, Payload
from squallpy.base.types import Kind
from squallpy.codegen.derivations import FIRST, RESERVED, TOUCHED, DerivationCode, DerivationPrinter
from squallpy.codegen.expressions import print_text
from squallpy.codegen.names import Lines, Names, NotCompilable
from squallpy.codegen.values import Text, Value, bounds, real_word
from squallpy.functions.model_functions import Statistics
from squallpy.logical.expressions import Column
from squallpy.physical.plan import AuxiliaryPlan
from squallpy.program.auxiliary.model_rows import ModelRows
from squallpy.program.views import View


def print_model_rows(relation: str, delta: View, payload: Payload, aux: AuxiliaryPlan, function: str) -> DerivationCode:
    """Print the function that computes a delta of a model's rows; raises NotCompilable."""
    assert isinstance(aux.kind, ModelRows)
    [ring] = aux.source.payload.rings
    if not (isinstance(aux.kind.model, Statistics) and isinstance(ring, Cofactor) and ring.degree == 1):
        return _solved_rows(relation, delta, aux, function)
    return _CellRows(delta, payload, function, aux=aux, relation=relation).derivation()


def _solved_rows(relation: str, delta: View, aux: AuxiliaryPlan, function: str) -> DerivationCode:
    lines = Lines()
    lines(f'"""Leave {delta.name} to the solver of {aux.kind}; −1: there is something to do."""')
    lines(f"return -1 if load(given, {FIRST}) | count_of(frame_at(load(given, {TOUCHED}))) != 0 else 0")
    text = "\n".join(["@entry", f"def {function}(given):", *lines.lines]) + "\n"
    return DerivationCode(relation, delta.name, aux.source.name, function, text, ())


@dataclass
class _CellRows(DerivationPrinter):
    names: Names = field(default_factory=lambda: Names({*RESERVED}))
    depth: ClassVar = 5

    @property
    def _kind(self) -> ModelRows:
        assert isinstance(self.aux.kind, ModelRows)
        return self.aux.kind

    @property
    def _ring(self) -> Cofactor:
        [ring] = self.aux.source.payload.rings
        assert isinstance(ring, Cofactor)
        return ring

    @property
    def _room(self) -> int:
        """Words for the numbers of names and the places of variables."""
        return 1 + 2 * len(self._kind.features)

    def _place(self, column: Column) -> int:
        """Find which field of a row a column is, from the group's first on."""
        name = self._fields.get(column.id)
        if name is None:
            raise NotCompilable(f"{column}, which is no field")
        return [title for title, _ in self.aux.output.items].index(name)

    def _word(self, column: Column) -> str:
        place, width = self._place(column), len(self.aux.source.keys)
        return f"load(group, {place})" if place < width else ("cell_a", "cell_b", "cell")[place - width]

    def _key(self, key: Column) -> str:
        if key.type.kind is Kind.VARCHAR:
            return self._word(key)
        return super()._key(key)

    def _load(self, column: Column) -> Value:
        if self._place(column) < len(self.aux.source.keys):
            return self._load_key(column, self._place(column))
        return Value(self._word(column), None, *bounds(column.type))

    def _load_text(self, column: Column) -> Text:
        if column.nullable:
            raise NotCompilable(f"{column}, a text that is looked at")
        return print_text(column, self._word(column), self._row)

    def _head(self, lines: Lines) -> None:
        super()._head(lines)
        lines("names = room_of(steps)")
        for i, name in enumerate(("", *self._kind.features)):
            lines(f"store(names, {i}, intern(steps, {self.body.address(name)}, {len(name.encode())}))")
        lines(f"places = names + {8 * (1 + len(self._kind.features))}")
        for i, place in enumerate(self._kind.variables):
            lines(f"store(places, {i}, {place - self._ring.first})")

    def _rows(self, lines: Lines) -> None:
        width, broad, features = len(self.aux.source.keys), self._ring.words, len(self._kind.features)
        lines(
            f"for record in range({'count_of(touched)' if width else f'max(count_of(touched), load(given, {FIRST}))'}):"
        )
        lines(f"    group = key_of(touched, record, {width})")
        lines("    now = find(source, group, steps)")
        lines("    for half in range(2):")
        lines(f"        payload = words_of(touched, record, {broad}) if half == 0 else words_of(source, now, {broad})")
        lines("        count = load(payload, 0) if half == 0 or now >= 0 else 0")
        lines(f"        if count != 0 and has_odd(payload, {self._ring.size}):")
        lines("            return -1")
        lines("        times, fits = 2 * half - 1, 1")
        lines("        if count == 0:" if width else f"        if half == 0 and load(given, {FIRST}) != 0:")
        lines("            continue")
        lines(f"        for i in range(-1, {features} if count != 0 else 0):")
        lines("            for j in range(-1, i + 1):")
        lines("                cell_a, cell_b = load(names, i + 1), load(names, j + 1)")
        lines("                if i < 0:")
        lines(f"                    cell = real_of(count, {real_word(1.0)})")
        lines("                else:")
        lines("                    second = load(places, j) if j >= 0 else -1")
        lines(f"                    cell = cell_of(payload, {self._ring.code}, load(places, i), second)")
