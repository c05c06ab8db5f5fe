"""A feed's delta, printed: a function over the rows of an Arrow batch, which filters, computes, and adds up by key.

ΔLINEITEM(o_orderkey) ⟨1, price · (1 − discount)⟩ where shipdate > d

    for block in range(0, rows, 64):
        chosen = … l_shipdate > d …             a bit for each row of the block
        while chosen != 0:
            …
            entered = enter(sums, key, …)       add 1 and price · (1 − discount) to its payload

A text among the keys is its number in the dictionary. Neighbours with the same key look it up once.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import field
from typing import Final

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, Payload, Ring
from squallpy.base.rings.payload import LaneRing
from squallpy.base.types import BIGINT, DOUBLE, Kind, Type
from squallpy.catalog.relation import MULT
from squallpy.codegen.added_rows import RECENT, add_lanes, enter_key, store_key
from squallpy.codegen.expressions import RowExpressions
from squallpy.codegen.group_code import (
    BATCH,
    COLUMNS,
    DICTIONARY,
    FIRST,
    MARKS_WORDS,
    ROWS,
    SHORT_TEXTS,
    STEPS,
    SUMS,
    GroupCode,
)  # fmt: skip
from squallpy.codegen.imports import IMPORTED
from squallpy.codegen.names import Lines, Names, NotCompilable
from squallpy.codegen.values import Text, Value, bounds
from squallpy.logical.expressions import Call, Cast, Column, Expr, Literal, columns, walk
from squallpy.program.calculus import Assign, Cmp, Lane, lifted
from squallpy.program.views import View

ARROW: Final = {  # the buffers that a column is read from, by the kind of its type
    Kind.BOOLEAN: "bool", Kind.INT: "int64", Kind.BIGINT: "int64", Kind.DECIMAL: "decimal128", Kind.DATE: "date32[day]",
    Kind.TIMESTAMP: "timestamp[us]", Kind.DAY_TO_SECOND: "duration[us]", Kind.VARCHAR: "string", Kind.DOUBLE: "double",
}  # fmt: skip

_SCANNED: Final = {
    Kind.BOOLEAN, Kind.INT, Kind.BIGINT, Kind.DECIMAL, Kind.DATE, Kind.TIMESTAMP, Kind.DAY_TO_SECOND,
}  # fmt: skip
_BLOCKS_AHEAD: Final = 2  # whose lines are asked for
_TEXTS_AHEAD: Final = 16  # rows for whose texts a dictionary is asked at a time

RESERVED: Final = {
    "given", "steps", "batch", "first", "rows", "row", "block", "chosen", "i", "dictionary", "sums", "key", "last",
    "short_texts", "fits", "waiting", "coming", "asked", "record", "entered", "words", "left", "lifted", "marks",
    "shift", "fresh", "appends", "recent", "composed", "place", "range", "abs", "max", "min", *IMPORTED,
}  # fmt: skip


def print_group(delta: View, payload: Payload, function: str, is_signed: bool) -> GroupCode:
    """Print the function that computes a delta of a batch; raises NotCompilable.

    Args:
        is_signed: Rows have multiplicities.
    """
    return _Group(delta, payload, function, is_signed=is_signed).code()


@dataclass
class GroupBody(ABC):
    """The loop over rows that filters, computes, and adds up by key."""

    delta: View
    payload: Payload
    function: str
    names: Names = field(default_factory=lambda: Names(set(RESERVED)))
    body: Lines = field(default_factory=lambda: Lines(depth=2))

    def _print(self, times: Callable[[], Value] | None) -> None:
        """Print the loop's body.

        Args:
            times: Prints how often a row counts.
        """
        rings, (term,) = self.payload.rings, self.delta.terms
        (atom,) = term.atoms
        self._fields = {v.id: name for name, v in atom.fields}
        self._row = row = RowExpressions(
            self.body, self.names, self._load, self._load_text, composed="composed" if self._has_composed else ""
        )
        self._begin_row()
        self._filter_and_compute([f for f in term.body if isinstance(f, Assign | Cmp)])
        keys = [self._key(key) for key in self.delta.keys]
        sums = [lane for lane in term.lanes if lane is not None]
        exact = (Ring.COUNT, Ring.EXACT)
        values = [row.product(lane) if ring in exact else None for lane, ring in zip(sums, rings, strict=True)]
        count = times() if times else None
        codes = list[str]()
        for lane, ring, value in zip(sums, rings, values, strict=True):
            if value is not None:
                codes.append((row.times(value, count) if count else value).code)
            else:
                codes.append(self._lift(lane, count) if isinstance(ring, Cofactor) else row.real_product(lane, count))
        self.body("if fits == 0:")
        self.body("    return -1")
        self._add(keys, list(zip(codes, rings, self.payload.offsets, strict=True)))

    def _lift(self, lane: Lane, count: Value | None) -> str:
        """Print how often a row counts and, behind commas, the doubles that are lifted, in the order of variables."""
        found = sorted(filter(None, map(lifted, lane)), key=lambda pair: pair[1])
        assert len(found) == len(lane), "a lane lifts all of its factors, or none"
        doubles = (self._row.value(Cast(value, DOUBLE)).code for value, _ in found)
        return ", ".join([count.code if count else "1", *doubles])

    @property
    def _in_locals(self) -> bool:
        """True if sums are in locals: of one key alone, and none of doubles."""
        return not self.delta.keys and all(ring in (Ring.COUNT, Ring.EXACT) for ring in self.payload.rings)

    @property
    def _has_marks(self) -> bool:
        """True if keys may be marked, so that all rows are checked before one is added."""
        return False

    @property
    def _has_composed(self) -> bool:
        """True if there is room for texts that are composed."""
        return False

    @property
    def _may_append(self) -> bool:
        """True if it may be told that rows are not to be added up by key, but to stand one behind the other."""
        return False

    def _begin_row(self) -> None:
        """Print what decides whether there is a row."""
        return

    @abstractmethod
    def _load(self, column: Column) -> Value: ...

    @abstractmethod
    def _load_text(self, column: Column) -> Text: ...

    @abstractmethod
    def _head(self, lines: Lines) -> None:
        """Print what comes before the rows."""

    @abstractmethod
    def _rows(self, lines: Lines) -> None:
        """Print the head of the loop."""

    def _filter_and_compute(self, steps: list[Assign | Cmp]) -> None:
        """Print predicates and variables: first the predicates that need no variable, all of them before rows go."""
        assigned = {f.variable for f in steps if isinstance(f, Assign)}
        early = [f for f in steps if isinstance(f, Cmp) and not columns(f.predicate) & assigned]
        waiting = [f for f in steps if f not in early]
        self._filter(self._after_scan(early))
        while waiting:
            unknown = {f.variable for f in waiting if isinstance(f, Assign)}
            ready = [f for f in waiting if not (f.reads - _own(f)) & unknown]
            assert ready, "assignments in a circle"
            waiting = [f for f in waiting if f not in ready]
            for step in ready:
                if isinstance(step, Assign):
                    self._row.assign(step.variable, step.value)
                else:
                    self._filter([step])

    def _after_scan(self, predicates: list[Cmp]) -> list[Cmp]:
        """Print predicates by which rows are chosen before the loop's body, if there are some; return the others."""
        return predicates

    def _filter(self, predicates: list[Cmp]) -> None:
        """Print predicates; where none of them can fail, a row goes at the first that is not TRUE."""
        if any(_can_fail(p.predicate) for p in predicates):  # NB: an error counts wherever another is FALSE
            tests = [self._test(predicate) for predicate in predicates]
            self._drop_unless(" & ".join(tests))
            return
        for predicate in predicates:
            self._drop_unless(self._test(predicate))

    def _test(self, predicate: Cmp) -> str:
        self.body.note(f"where {predicate.predicate}")
        return self._row.value(predicate.predicate).code

    def _drop_unless(self, test: str) -> None:
        with self.body.block(f"if {test} == 0:"):
            if self._row.checks:
                self.body("if fits == 0:")
                self.body("    return -1")
            self.body("continue")

    def _key(self, key: Column) -> str:
        return self._row.key(key)

    def _add(self, keys: list[str], lanes: list[tuple[str, LaneRing, int]]) -> None:
        """Print how values are added to the payload of a key, or to locals."""
        if self._in_locals:
            for value, ring, at in lanes:
                if ring is Ring.COUNT:
                    self.body(f"sum_{at} += {value}")
                else:
                    self.body(f"sum_{at}, sum_{at + 1} = exact_add(sum_{at}, sum_{at + 1}, {value}, sign({value}))")
            return
        if self._has_marks:
            store_key(self.body, keys, "key")
            self.body("if marks != 0:")
            self.body(f"    fresh += mark_key(marks, shift, key, {len(keys)})")
            self.body("    continue")
        enter_key(self.body, keys, self.payload.width, self._may_append)
        add_lanes(self.body, lanes, "words")
        with self.body.block("if left == 0:"):
            self.body("remove(sums, last, steps)")
            self.body("entered = -1")

    def _text(self) -> str:
        lines = Lines()
        self._head(lines)
        if self._in_locals:
            lines(f"{' = '.join(f'sum_{i}' for i in range(self.payload.width))} = 0")
        else:
            lines("entered, words, last = -1, 0, 0")
        self._rows(lines)
        lines.lines += self.body.lines
        if self._in_locals:
            lines(f"if {' | '.join(f'sum_{i}' for i in range(self.payload.width))} != 0:")
            with lines.block("    record = enter(sums, key, steps, 0)"):
                lines("if record < 0:")
                lines("    return -2")
                lines(f"words = words_of(sums, record, {self.payload.width})")
                for i in range(self.payload.width):
                    lines(f"store(words, {i}, sum_{i})")
        lines("return fresh" if self._has_marks else "return 0")
        return "\n".join(["@entry", f"def {self.function}(given):", *lines.lines]) + "\n"


@dataclass
class _Group(GroupBody):
    is_signed: bool = field(kw_only=True)
    columns: dict[str, Type] = field(default_factory=dict)
    at: dict[str, str] = field(default_factory=dict)  # by column
    head: Lines = field(default_factory=Lines)
    looked_through: set[tuple[str, bool]] = field(default_factory=set)  # columns, and whether they may be NULL
    scan: Lines = field(default_factory=lambda: Lines(depth=3))
    compared: list[str] = field(default_factory=list)  # columns for whose lines rows that a scan has chosen ask
    numbered: list[str] = field(default_factory=list)  # columns of texts whose numbers are keys
    texts: int = 0

    def code(self) -> GroupCode:
        self._print(self._load_times if self.is_signed else None)
        constants, read = tuple(self.body.texts), tuple(self.columns.items())
        room = max((ring.size + ring.words for ring in self.payload.rings if isinstance(ring, Cofactor)), default=0)
        text = self._text()
        recent, name, composed = RECENT if self._may_append else 0, self.delta.name, self._row.has_composed
        return GroupCode(
            name, self.function, text, read, self.texts, constants, room, self._has_marks, recent, composed
        )

    @property
    def _has_marks(self) -> bool:
        return bool(self.delta.keys) and any(isinstance(ring, Cofactor) for ring in self.payload.rings)

    @property
    def _has_composed(self) -> bool:
        return True

    @property
    def _may_append(self) -> bool:
        return bool(self.delta.keys)

    def _key(self, key: Column) -> str:
        if key.type.kind is Kind.VARCHAR:
            text, place = self._row.text(key), f"short_texts + {8 * self.texts * SHORT_TEXTS}"
            number = self.names("number")
            self.texts += 1
            if key.id in self._fields:
                self.numbered.append(self.at[self._fields[key.id]])
            found = f"number_of(dictionary, {place}, {text.address}, {text.length}, steps)"
            self.body(f"{number} = {found}" + (f" if {text.known} else -1" if text.known else ""))
            self.body(f"if {number} == -2:")
            self.body("    return -2")
            return number
        return super()._key(key)

    def _load_times(self) -> Value:
        times = self._column(MULT, BIGINT)
        name = self.names("times")
        self.body(f"{name} = load({times}, row) if {times} != 0 else 1")
        return Value(name, None, *bounds(BIGINT))

    def _column(self, name: str, type: Type) -> str:
        """Print, once, where the values of a column begin: those of the first row."""
        known = self.columns.get(name)
        if known is None:
            self.columns[name] = type
            at = self.names(f"{name}_at")
            self.at[name] = at
            place = COLUMNS + len(self.columns) - 1
            child, first = f"load(given, {place})", f"{at}_first"
            self.head(f"{first} = first_of(batch, {child}) + first if {child} >= 0 else 0")
            size = {Kind.BOOLEAN: "0", Kind.DATE: f"4 * {first}", Kind.DECIMAL: f"16 * {first}"}
            begin = size.get(type.kind, f"4 * {first}" if type.kind is Kind.VARCHAR else f"8 * {first}")
            self.head(f"{at} = values_at(batch, {child}, 1) + {begin} if {child} >= 0 else 0")
            if type.kind is Kind.VARCHAR:
                self.head(f"{at}_bytes = values_at(batch, {child}, 2)")
        return self.at[name]

    def _known(self, column: Column, name: str, at: str) -> str | None:
        """Print whether the row's value is not NULL; a column that has none is looked through beforehand."""
        child = f"load(given, {COLUMNS + list(self.columns).index(name)})"
        if (name, column.nullable) not in self.looked_through:
            self.looked_through.add((name, column.nullable))
            if column.nullable:
                self.head(f"{at}_valid = values_at(batch, {child}, 0)")
            else:
                self.head(f"if has_null(batch, {child}, {at}_first, rows):")
                self.head("    return -1")
        if not column.nullable:
            return None
        known = self.names(f"{name}_known")
        self.body(f"{known} = is_known({at}_valid, {at}_first + row)")
        return known

    def _load(self, column: Column) -> Value:
        if column.id not in self._fields:
            raise NotCompilable(f"{column}, which is no field")
        name, type = self._fields[column.id], column.type
        if type.kind not in ARROW:
            raise NotCompilable(f"{name}, a {type}")
        at = self._column(name, type)
        known = self._known(column, name, at)
        loads = {
            Kind.BOOLEAN: f"bit({at}, {at}_first + row)",
            Kind.DATE: f"half({at}, row)",
            Kind.DECIMAL: f"load({at}, 2 * row)",
        }
        word = self.names(name)
        code = loads.get(type.kind, f"load({at}, row)")
        self.body(f"{word} = {code} if {known} else 0" if known else f"{word} = {code}")
        if type.is_wide:
            self._row.checks += 1
            apart = f"{known} == 0 or " if known else ""
            self.body(f"fits &= 1 if {apart}load({at}, 2 * row + 1) == {word} >> 63 else 0")
        return Value(word, known, *bounds(type))

    def _load_text(self, column: Column) -> Text:
        if column.id not in self._fields:
            raise NotCompilable(f"{column}, a text that is computed")
        name = self._fields[column.id]
        at = self._column(name, column.type)
        known = self._known(column, name, at)
        start, length = self.names(f"{name}_start"), self.names(f"{name}_length")
        self.body(f"{start} = load32({at}, row)")
        self.body(f"{length} = load32({at}, row + 1) - {start}")
        self.body(f"{start} += {at}_bytes")
        return Text(start, length, known)

    def _head(self, lines: Lines) -> None:
        keys = ", ".join(map(str, self.delta.keys))
        lines(f'"""Compute {self.delta.name}({keys}) of the rows of a batch; −1: no answer, −2: no memory."""')
        lines(f"steps, batch, first, rows = {', '.join(f'load(given, {i})' for i in (STEPS, BATCH, FIRST, ROWS))}")
        lines(f"dictionary, sums = load(given, {DICTIONARY}), frame_at(load(given, {SUMS}))")
        lines(f"key, short_texts = key_room(sums), given + {8 * (COLUMNS + len(self.columns))}")
        at = COLUMNS + len(self.columns) + self.texts * SHORT_TEXTS
        if self._may_append:
            lines(f"appends, recent = does_append(steps), given + {8 * at}")
            at += RECENT
        if self._has_marks:
            lines(f"marks, shift, fresh = load(given, {at}), load(given, {at + 1}), 0")
            at += MARKS_WORDS
        if self._row.has_composed:
            lines(f"composed = given + {8 * at}")
        lines.lines += self.head.lines

    def _rows(self, lines: Lines) -> None:
        if not self.scan.lines:
            lines("for row in range(rows):")
            if self.numbered:
                lines(f"    if row & {_TEXTS_AHEAD - 1} == 0:")
            for at in self.numbered:
                lines(f"        ask_texts(dictionary, {at} + 4 * row, {at}_bytes, min({_TEXTS_AHEAD}, rows - row))")
            lines("    fits = 1")
            return
        ahead = f" + {_BLOCKS_AHEAD * 64}" if self.compared else ""
        if ahead:
            lines("waiting = coming = 0  # rows of the two blocks before, whose lines are on their way")
        with lines.block(f"for block in range(0, rows{ahead}, 64):"):
            lines("chosen = 0  # of the rows of the block, by their bits")
            self._scan_block(lines)
            if ahead:
                lines("asked = chosen")
                with lines.block("while asked != 0:"):
                    lines("row, asked = block + lowest(asked), asked & (asked - 1)")
                    for at in self.compared:
                        lines(f"prefetch({at} + 16 * row)")
                lines("chosen, waiting, coming = waiting, coming, chosen")
            with lines.block("while chosen != 0:"):
                lines(f"row = block{ahead.replace('+', '-')} + lowest(chosen)")
                lines("chosen &= chosen - 1")
                lines("fits = 1")

    def _scan_block(self, lines: Lines) -> None:
        """Print how rows of a block are chosen: of a whole one, many at a time, as their number is a constant."""
        for head, count in (("if block + 64 <= rows:", "64"), ("else:", "rows - block")):
            with lines.block(head):
                lines(f"for i in range({count}):")
                lines("    row = block + i")
                lines.lines += [f"    {line}" for line in self.scan.lines]

    def _after_scan(self, predicates: list[Cmp]) -> list[Cmp]:
        """Choose rows by the predicates of one column, or two, a block of rows at a time and without a branch.

        Where a predicate is neither nearly always TRUE nor nearly never, the processor could not predict it. Those of
        other dates are computed with them: hardly a line of so narrow a column is not read. Decimals that others
        compare are asked for two blocks ahead: few of a column's lines are read, in no order that is foreseen.
        """
        apart = Counter(p.reads for p in predicates if _is_scanned(p.predicate))
        if not apart or any(_can_fail(p.predicate) for p in predicates):
            return predicates
        read = max(apart, key=lambda columns: (-len(columns), apart[columns]))
        dates = {column for p in predicates for column in columns(p.predicate) if column.type.kind is Kind.DATE}
        scanned = [p for p in predicates if p.reads <= read | dates and _is_scanned(p.predicate)]
        read = frozenset().union(*(p.reads for p in scanned))
        body, self.body = self.body, self.scan
        row, self._row = self._row, RowExpressions(self.body, self.names, self._load, self._load_text)
        tests = [self._test(predicate) for predicate in scanned]
        chosen = f"({' & '.join(tests)})" if len(tests) > 1 else tests[0]
        self.body(f"chosen |= {chosen} << i")
        self.body, self._row = body, row
        self.body.depth += 1
        others = [p for p in predicates if p not in scanned]
        later = {c for p in others if _is_scanned(p.predicate) for c in columns(p.predicate) if c.id in self._fields}
        decimals = {self._fields[c.id]: c.type for c in later - read if c.type.kind is Kind.DECIMAL}
        self.compared = [self._column(name, decimals[name]) for name in sorted(decimals)]
        return others


def scalar_rings(payload: Payload) -> list[Ring]:
    """List the rings of a payload of counts and sums; raises NotCompilable."""
    rings = [ring for ring in payload.rings if isinstance(ring, Ring)]
    if len(rings) < len(payload.rings):
        raise NotCompilable(f"⟨{', '.join(ring.name for ring in payload.rings)}⟩")
    return rings


def _can_fail(predicate: Expr) -> bool:
    """True if the evaluation of a predicate may have no answer in 64 bits."""
    return any(
        isinstance(part, Cast) or (isinstance(part, Call) and part.type.kind is not Kind.BOOLEAN) or part.type.is_wide
        for part in walk(predicate)
    )


def _is_scanned(predicate: Expr) -> bool:
    """True if a predicate compares columns of fixed width and constants."""
    read, parts = columns(predicate), [*walk(predicate)]
    plain = all(isinstance(part, Column | Literal | Call) for part in parts)
    return plain and bool(read) and all(v.type.kind in _SCANNED for v in read)


def _own(step: Assign | Cmp) -> frozenset[Column]:
    return frozenset((step.variable,)) if isinstance(step, Assign) else frozenset()
