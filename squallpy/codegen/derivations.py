"""The delta of an auxiliary relation, printed: the rows of touched groups before the batch go, those after it come.

ΔN1 from the groups of M_LINEITEM that changed

    for record in range(count_of(touched)):
        for half in range(2):
            payload = …                         as it was, then as it is
            if load(payload, 0) == 0: continue
            …
            add −1, then 1, to ΔN1
"""

from collections.abc import Iterable
from dataclasses import field
from typing import ClassVar, Final

from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind
from squallpy.codegen.domains import MOST_KEYS, Domain, columns_word
from squallpy.codegen.expressions import RowExpressions, print_key, print_text
from squallpy.codegen.lane_products import PayloadRooms
from squallpy.codegen.names import Lines, Names, NotCompilable, constant
from squallpy.codegen.pre_aggregation import RESERVED as ROW_NAMES
from squallpy.codegen.pre_aggregation import GroupBody, scalar_rings
from squallpy.codegen.values import Text, Value, bounds, real_word
from squallpy.logical.expressions import Column, Expr
from squallpy.physical.plan import AuxiliaryPlan
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.output_spec import Measure
from squallpy.program.views import View

# Words that a derivation is given, by the address of the first.
STEPS: Final = 0
TOUCHED: Final = 1  # frames: groups that the batch touched, the view as it is, and what is added to
SOURCE: Final = 2
SUMS: Final = 3
FIRST: Final = 4  # 1 in the first batch
DOMAIN: Final = 5  # the frame of the view that has all groups of which rows are read, if there is one
WORDS: Final = 6
_MOST_ROWS: Final = 2**62  # there never were as many
RESERVED: Final = {
    *ROW_NAMES, "touched", "source", "group", "now", "half", "payload", "times", "names", "places", "count", "cell_a",
    "cell_b", "cell", "i", "j", "second", "changed", "old", "nothing", "found", "domain",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DerivationCode:
    """A printed function that computes a delta of an auxiliary relation.

    Args:
        source: The view whose touched groups it reads.
        constants: Texts that it has.
        room: Words that it uses besides.
        is_extreme: It reads what changed of the extremes of the view's groups.
        domain: The view that has all groups of which rows are read.
    """

    relation: str
    delta: str
    source: str
    function: str
    text: str
    constants: tuple[str, ...]
    room: int = 0
    is_extreme: bool = False
    domain: str | None = None


def check_rows(aux: AuxiliaryPlan, derived: bool = False) -> None:
    """Raise NotCompilable unless rows are groups, of counts and exact sums, once each where the group is there.

    Args:
        derived: There may be one row, also over nothing, or rows as often as something says.
    """
    output = aux.output
    if not isinstance(aux.kind, Groups) or output.aggregated_key:
        raise NotCompilable(f"rows of {type(aux.kind).__name__}{' over a key' if output.aggregated_key else ''}")
    if output.number or (not derived and (output.repeat or output.having or output.times)):
        raise NotCompilable("rows that are repeated, or there only if a predicate is TRUE")
    if output.single and (aux.source.keys or not derived):
        raise NotCompilable("a row that is there without a group")
    scalar_rings(aux.source.payload)
    if aux.source.is_ordered:
        raise NotCompilable(f"{aux.source.name}, which is its sorted indexes")


def print_derivation(
    relation: str, delta: View, payload: Payload, aux: AuxiliaryPlan, function: str, domain: Domain | None = None
) -> DerivationCode:
    """Print the function that computes a delta of an auxiliary relation; raises NotCompilable."""
    check_rows(aux, derived=True)
    return DerivationPrinter(delta, payload, function, aux=aux, relation=relation, domain=domain).derivation()


@dataclass
class DerivationPrinter(GroupBody):
    """Prints the function that computes a delta of the rows of groups."""

    aux: AuxiliaryPlan = field(kw_only=True)
    relation: str = field(kw_only=True)
    domain: Domain | None = field(default=None, kw_only=True)
    names: Names = field(default_factory=lambda: Names({*RESERVED}))

    depth: ClassVar = 3
    """Indentation of what is done with a row."""

    @property
    def _room(self) -> int:
        """Words that the function uses besides."""
        return self.aux.source.payload.width if self.aux.output.single else 0

    def derivation(self) -> DerivationCode:
        """Print it; raises NotCompilable."""
        self.body.depth = self.depth
        self._print(self._load_times)
        source, text, constants = self.aux.source.name, self._text(), tuple(self.body.texts)
        extreme, room = self.aux.output.aggregated_key is not None, self._room
        domain, names = self.domain.view if self.domain else None, (self.relation, self.delta.name, source)
        return DerivationCode(*names, self.function, text, constants, room, extreme, domain)

    def _begin_row(self) -> None:
        having = self.aux.output.having
        if having is not None:
            self.body.note(f"having {having}")
            self._drop_unless(self._computed(having).code)

    def _load_times(self) -> Value:
        """Print how often a row is there: once, or as its group or an expression says, and below 0 if it goes."""
        output, once = self.aux.output, Value("times", None, -1, 1)
        if output.repeat:
            count = f"load(payload, {self.aux.source.payload.offsets[output.count]})"
            often = self._row.let(f"max({count}, 0)", None, "multiplicity", 0, _MOST_ROWS)
        elif output.times is None:
            return once
        else:
            value = self._computed(output.times)
            often = self._row.let(f"max({value.code}, 0)", None, output.times, 0, max(value.most, 0))
        return self._row.times(often, once)

    def _computed(self, expr: Expr) -> Value:
        """Print an expression over keys and measures."""
        parts = self._parts()
        value = parts.value(expr)
        self._row.checks += parts.checks
        return value

    def _key(self, key: Column) -> str:
        if key.type.kind is not Kind.VARCHAR:
            return super()._key(key)
        is_key = key.id in self._fields and self._item(key) in self.aux.source.keys
        return self._key_word(self._item(key)) if is_key else self._row.text_key(key)

    def _key_word(self, item: Expr) -> str:
        """Print the word of a key of the view."""
        if item not in self.aux.source.keys:
            raise NotCompilable(f"{item}, which is no key of {self.aux.source.name}")
        return f"load(group, {self.aux.source.keys.index(item)})"

    def _item(self, column: Column) -> Expr:
        name = self._fields.get(column.id)
        if name is None:
            raise NotCompilable(f"{column}, which is no field")
        return next(expr for title, expr in self.aux.output.items if title == name)

    def _load(self, column: Column) -> Value:
        item = self._item(column)
        return self._load_item(column, item) if isinstance(item, Column) else self._computed(item)

    def _load_item(self, column: Column, item: Column) -> Value:
        """Print the value of a key of the view, or of a measure."""
        if item in self.aux.source.keys:
            return self._load_key(column, self.aux.source.keys.index(item))
        measure = next((m for m in self.aux.output.measures if m.column == item), None)
        if measure is None:
            raise NotCompilable(f"{item}")
        return print_measure(self._row, self.aux, column, measure, "payload")

    def _load_key(self, column: Column, place: int) -> Value:
        word = self.names(column.name)
        self.body(f"{word} = load(group, {place})")
        return print_key(column, word, self._row)

    def _load_text(self, column: Column) -> Text:
        item = self._item(column)
        if isinstance(item, Column):
            return print_text(column, self._key_word(item), self._row)
        return self._parts().text(item)

    def _parts(self) -> RowExpressions:
        """Make the printer of a computed field, of which columns are those of the view."""
        return RowExpressions(
            self.body,
            self.names,
            lambda part: self._load_item(part, part),
            lambda part: print_text(part, self._key_word(part), self._row),
        )

    def _head(self, lines: Lines) -> None:
        lines(f'"""Compute {self.delta.name} of the groups of {self.aux.source.name}; −1: no answer, −2: no memory."""')
        lines(f"steps, touched = load(given, {STEPS}), frame_at(load(given, {TOUCHED}))")
        lines(f"source, sums = frame_at(load(given, {SOURCE})), frame_at(load(given, {SUMS}))")
        lines("key = key_room(sums)")
        if self.domain:
            lines(f"domain = frame_at(load(given, {DOMAIN}))  # {self.domain.view}")

    def _rows(self, lines: Lines) -> None:
        width, broad = len(self.aux.source.keys), self.aux.source.payload.width
        stored = PayloadRooms().print("source", "now", self.aux.source.payload)
        if self.aux.output.single:
            self._single_row(lines, broad, stored)
            return
        lines("for record in range(count_of(touched)):")
        lines(f"    group = key_of(touched, record, {width})")
        rows, domain = "min(64, count_of(touched) - record)", self.domain
        is_together = width <= MOST_KEYS and not (domain and domain.view == self.aux.source.name)
        if domain or is_together:
            lines("    if record & 63 == 0:")
        if domain:
            lines(f"        find_rows(domain, group, {width}, {domain.columns}, {rows}, 0, steps)")
        if is_together:
            before = "records_found(domain)" if domain else "0"
            lines(f"        find_rows(source, group, {width}, {columns_word(range(width))}, {rows}, {before}, steps)")
        if domain:
            lines("    if found_at(domain, record) < 0:")
            lines("        continue")
        lines(f"    now = {'found_at(source, record)' if is_together else 'find(source, group, steps)'}")
        lines("    for half in range(2):")
        lines("        if half == 1 and now < 0:")
        lines("            continue")
        lines(f"        payload = words_of(touched, record, {broad}) if half == 0 else {stored}")
        lines(f"        if load(payload, {self.aux.source.payload.offsets[self.aux.output.count]}) == 0:")
        lines("            continue")
        lines("        times, fits = 2 * half - 1, 1")

    def _single_row(self, lines: Lines, broad: int, stored: str) -> None:
        """Print the head of the loop over the one row, which is there also of nothing."""
        lines(f"first, nothing = load(given, {FIRST}), room_of(steps)")
        lines(f"for i in range({broad}):")
        lines("    store(nothing, i, 0)")
        lines("for record in range(max(count_of(touched), first)):")
        lines("    now = find(source, key, steps)")
        lines("    for half in range(2):")
        lines("        if half == 0 and first != 0:")
        lines("            continue")
        lines(f"        payload = words_of(touched, record, {broad})")
        lines("        if half == 1:")
        lines(f"            payload = {stored} if now >= 0 else nothing")
        lines("        times, fits = 2 * half - 1, 1")


def print_measure(row: RowExpressions, aux: AuxiliaryPlan, column: Column, measure: Measure, payload: str) -> Value:
    """Print a count, a sum or a mean of a group; a sum without room in 64 bits, or in its type, has no answer.

    Args:
        payload: The address of the group's payload.
    """
    lines, names, rings, offsets = row.lines, row.names, aux.source.payload.rings, aux.source.payload.offsets
    lane, word = _lane(measure.value), names(column.name)
    at = offsets[lane]
    if measure.function == "count" and rings[lane] is Ring.COUNT:
        lines(f"{word} = load({payload}, {at})")
        return Value(word, None, -_MOST_ROWS, _MOST_ROWS)
    if measure.function not in ("sum", "avg"):
        raise NotCompilable(f"{measure.function.upper()} of a group")
    if rings[lane] not in (Ring.COUNT, Ring.EXACT):
        raise NotCompilable(f"{column}, a sum of doubles of a group")
    count, known = names(f"{column.name}_count"), names(f"{column.name}_known")
    lines(f"{count} = load({payload}, {offsets[_lane(measure.present)]})")
    lines(f"{known} = 1 if {count} != 0 else 0")
    high = f"load({payload}, {at + 1})" if rings[lane] is Ring.EXACT else f"load({payload}, {at}) >> 63"
    if measure.function == "avg":
        unit = real_word(10.0**measure.scale)
        lines(f"{word} = mean_of(load({payload}, {at}), {high}, {count}, {unit})")
        return Value(word, known, *bounds(column.type))
    least, most = bounds(column.type)
    if (least, most) != bounds(measure.column.type):
        raise NotCompilable(f"{column}, of another type")
    row.checks += 1
    lines(f"{word} = load({payload}, {at})")
    lines(f"fits &= 1 if {high} == {word} >> 63 and {constant(least)} <= {word} <= {constant(most)} else 0")
    value = names(column.name)
    lines(f"{value} = {word} if {known} else 0")
    return Value(value, known, least, most)


def _lane(terms: Iterable[tuple[int, int]]) -> int:
    match list(terms):
        case [(1, lane)]:
            return lane
    raise NotCompilable("a sum of several lanes")
