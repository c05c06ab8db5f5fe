"""Lookups of ranges, printed: the bounds of a row's range by bisection, then its records, one of them, or their sum.

ΔN1(t) → range M_CUSTOMER(balance > t)

    while True:                         the least value of the index for which `balance > t` is TRUE
        balance = tried
        …
        tried = middle(low, high)
    while True:
        place = next_between(order, bounds, place, steps)
        …

Rows that differ in nothing but their ranges are first cut into ranges that do not overlap: if t was 8 and is 9, what is
between is looked up once, taken away.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from squallpy.base.index_order import Order
from squallpy.base.keys import NULL, least_in_order
from squallpy.base.rings import Ring
from squallpy.codegen.names import NotCompilable
from squallpy.logical.expressions import Expr
from squallpy.physical.plan import Lookup, PoolPlan, Update

if TYPE_CHECKING:
    from squallpy.codegen.statements import StatementPrinter

OVERLAID_ROWS: Final = 256  # rows whose ranges are cut together
_GREATEST = 2**63 - 1


def overlaid_range(update: Update, pools: Mapping[str, PoolPlan]) -> Lookup | None:
    """Find the lookup of a statement before which rows are cut into ranges that do not overlap, if there is one.

    It is the first, and rows may differ in nothing that it or a later step reads.
    """
    first = next((step for step in update.steps if isinstance(step, Lookup)), None)
    if first is None or first.range is None or first.method != "range":
        return None
    is_counted = all(ring is Ring.COUNT for ring in pools[update.delta].payload.rings)
    read = {*first.live, *(v.id for _, v in first.bound_keys)}
    return first if is_counted and not {v.id for v in update.variables} <= read else None


class RangePrinter:
    """Prints a lookup of ranges in a statement.

    Args:
        order: The sorted index that it is in.
        index: The argument that describes it.
    """

    def __init__(self, printer: "StatementPrinter", step: Lookup, order: Order, index: str) -> None:
        if step.range is None or order.heights or step.method not in ("range", "sum", "nearest"):
            raise NotCompilable(f"{step.method} {step.source}")
        self._of, self._step, self._order, self._index = printer, step, order, index
        self._range, self._body, self._names = step.range, printer.body, printer.names
        self._width, self._bounds = len(order.columns), printer.room_for("bounds", 2 * len(order.columns))

    def look_up(self, is_overlaid: bool) -> str:
        """Print a lookup; what follows is for each record that it finds. Returns where its payload is."""
        equal = [self._of.words[v.id] for _, v in self._step.bound_keys]
        self._begin(equal)
        low, high = self._find_ends()
        if is_overlaid:
            equal, low, high = self._overlay(equal, low, high)
            self._begin(equal)
        self._store_range(low, high)
        if self._step.method == "sum":
            payload = self._of.room_for("total", self._of.pools[self._step.source].payload.width)
            self._body(f"if sum_between({self._index}, {self._bounds}, {payload}, steps) == 0:")
            self._body("    continue")
            return payload
        return self._find_records()

    def _find_records(self) -> str:
        """Print how records are found, and what they bind; returns where their payload is."""
        place, entry = self._names("place"), self._names("entry")
        if self._step.method == "nearest":
            is_last = int((self._range.rising is None) is not self._order.descending)
            self._body(f"{place} = end_of({self._index}, {self._bounds}, {is_last}, steps)")
            self._body(f"if {place} < 0:")
            self._body("    continue")
        else:
            self._body(f"{place} = -1")
            self._body("while True:")
            self._body.depth += 1
            self._body(f"{place} = next_between({self._index}, {self._bounds}, {place}, steps)")
            self._body(f"if {place} < 0:")
            self._body("    break")
        self._body(f"{entry} = entry_of({self._index}, {place})")
        for position, variable in self._step.binds:
            if variable.id in self._step.live:
                at = self._order.columns.index(position)
                word = f"load({entry}, {at})"
                self._of.bind(variable, self._word(self._held(word)) if at == self._order.equal else word)
        return f"({entry} + {8 * self._width})"

    def _word(self, rank: str) -> str:
        """Print the word of a value of the ranged column, given its rank."""
        return f"real_of_rank({rank})" if self._order.real else rank

    def _held(self, rank: str) -> str:
        """Print a rank as the index has it, or one that it has as a rank."""
        return f"~{rank}" if self._order.descending else rank

    def _begin(self, equal: Sequence[str]) -> None:
        """Print what the keys of a range have besides its ends."""
        for i, word in enumerate(equal):
            self._body(f"store({self._bounds}, {i}, {word})")
            self._body(f"store({self._bounds}, {self._width + i}, {word})")
        for i in range(len(equal) + 1, self._width):
            self._body(f"store({self._bounds}, {i}, LEAST_WORD)")
            self._body(f"store({self._bounds}, {self._width + i}, {_GREATEST})")

    def _store_range(self, low: str, high: str) -> None:
        """Print that a range is from one rank to another."""
        first, last = (high, low) if self._order.descending else (low, high)
        self._body(f"store({self._bounds}, {self._order.equal}, {self._held(first)})")
        self._body(f"store({self._bounds}, {self._width + self._order.equal}, {self._held(last)})")

    def _find_ends(self) -> tuple[str, str]:
        """Print how the ends of a row's range are found between the least and greatest values that there are."""
        variable = self._range.variable
        least = least_in_order(variable.type)
        if variable.type.is_wide:
            self._store_range(f"({NULL + 1})", f"({least - 1})")
            self._body(f"if end_of({self._index}, {self._bounds}, 0, steps) >= 0:")
            self._body("    return -1")
            self._of.count_check()
        self._store_range(f"({least})", str(_GREATEST))
        ends = list[str]()
        for title in ("low", "high"):
            is_last = (title == "high") is not self._order.descending
            end, place = self._names(title), self._names("place")
            self._body(f"{place} = end_of({self._index}, {self._bounds}, {int(is_last)}, steps)")
            self._body(f"if {place} < 0:")
            self._body("    continue")
            held = f"load(entry_of({self._index}, {place}), {self._order.equal})"
            self._body(f"{end} = {self._held(held)}")
            ends.append(end)
        low, high = ends
        if self._range.rising is not None:
            self._bisect(self._range.rising, low, high, is_rising=True)
        if self._range.falling is not None:
            self._bisect(self._range.falling, low, high, is_rising=False)
        return low, high

    def _bisect(self, predicate: Expr, low: str, high: str, is_rising: bool) -> None:
        """Print the search for the first rank between two that a predicate is TRUE for, or for the last one."""
        variable, body = self._range.variable, self._body
        tried, some, first, last = map(self._names, ("tried", "some", "first", "last"))
        body(f"{tried}, {some}, {first}, {last} = {high if is_rising else low}, 0, {low}, {high}")
        with body.block("while True:"):
            body.note(f"where {predicate}")
            word = self._names(variable.name)
            body(f"{word} = {self._word(tried)}")
            test = self._of.value_where(predicate, variable, word)
            self._of.check()
            body(f"if {test} == 1:")
            body(f"    {last if is_rising else first}, {some} = {tried}, 1")
            body(f"elif {some} == 0:")
            body("    break")
            body("else:")
            body(f"    {f'{first} = {tried} + 1' if is_rising else f'{last} = {tried} - 1'}")
            body(f"if {first} >= {last}:")
            body("    break")
            half = f"middle({first}, {last})"
            body(f"{tried} = {half if is_rising else f'{last} - ({half} - {first})'}")
        body(f"if {some} == 0:")
        body("    continue")
        body(f"{low if is_rising else high} = {last if is_rising else first}")

    def _overlay(self, equal: Sequence[str], low: str, high: str) -> tuple[list[str], str, str]:
        """Print that ranges are noted and, behind the rows, cut; what follows is for each of what comes of them.

        Returns the names of a range's keys and ends.
        """
        words, body, delta = self._of.words, self._body, self._of.pools[self._of.update.delta]
        live = [id for id in sorted(self._step.live) if id in words]
        group, width = [*equal, *(words[id] for id in live)], delta.payload.width
        stride = len(group) + 2 + width
        pieces = self._of.room_for("pieces", OVERLAID_ROWS * stride)
        out = self._of.room_for("cut", 2 * OVERLAID_ROWS * stride)
        given, piece, number = self._names("piece"), self._names("piece"), self._names("number")
        body(f"{given} = {pieces} + {8 * stride} * noted")
        for i, word in enumerate((*group, low, high, *(f"load(given, {i})" for i in range(width)))):
            body(f"store({given}, {i}, {word})")
        body("noted += 1")
        body.depth -= 1
        body(f"for {number} in range(overlay({pieces}, noted, {len(group)}, {width}, {out}, steps)):")
        body.depth += 1
        body(f"{piece} = {out} + {8 * stride} * {number}")
        names = [self._names(title) for title in (*("equal" for _ in equal), *("kept" for _ in live), "low", "high")]
        for i, name in enumerate(names):
            body(f"{name} = load({piece}, {i})")
        body(f"given = {piece} + {8 * (len(group) + 2)}")
        self._of.rebind(dict(zip(live, names[len(equal) :], strict=False)))
        *_, low, high = names
        return names[: len(equal)], low, high
