"""Statements, printed: functions over the rows of a delta, which look views up and add to one.

ΔLINEITEM → slice M_ORDERS(o_orderkey) → add to M_ORDERS_LINEITEM(o_orderkey, …)

    for row in range(rows):
        entry = slice_of(m_orders, 1, …)
        for i in range(length_of(m_orders, 1, entry)):
            …
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from math import prod
from typing import ClassVar, Final

from squallpy.base.keys import NULL, is_own_key, is_plain, null_of
from squallpy.base.records import dataclass
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import Kind
from squallpy.codegen.derivations import check_rows, print_measure
from squallpy.codegen.expressions import RowExpressions, print_key, print_text
from squallpy.codegen.fusion import AddedRows, Part, with_parts
from squallpy.codegen.imports import IMPORTED
from squallpy.codegen.lane_products import PayloadRooms, print_product, print_real_product
from squallpy.codegen.names import Lines, Names, NotCompilable, constant
from squallpy.codegen.pre_aggregation import scalar_rings
from squallpy.codegen.ranges import OVERLAID_ROWS, RangePrinter, overlaid_range
from squallpy.codegen.statement_code import ONLY_CHECKED, ProductCode, StatementCode, order_name, touched_name
from squallpy.codegen.values import Text, Value
from squallpy.logical.expressions import COMPARISONS, MIRRORED, Call, Column, Expr, Literal, are_stored_alike, conjuncts
from squallpy.physical.explain_text import update_text
from squallpy.physical.plan import AuxiliaryPlan, FilterStep, Let, Lookup, PoolPlan, Update
from squallpy.program.views import RowFields

OUTCOME_ROWS: Final = 1024  # rows that a statement adds together
_OPERATORS = dict(zip(COMPARISONS, ("==", "!=", "<", "<=", ">", ">="), strict=True))
_RESERVED = {
    "given", "steps", "rows", "row", "keys", "words", "target", "pool", "range", "added", "out_keys", "out_words",
    "repeats", "result", "touched", "noting", "min", "max", "abs", "product", "found", "place", "some", "fits", "trial",
    "beyond", "noted", "start", *IMPORTED,
}  # fmt: skip


@dataclass
class StatementPrinter:
    """Prints the function that runs a statement, whose target has counts and sums.

    Args:
        pools: Layouts of all that a statement may read and change, by name.
        auxiliary: The auxiliary relations whose rows it may look at.
        watched: Views of which it notes the groups that it touches.
    """

    update: Update
    pools: Mapping[str, PoolPlan]
    function: str
    auxiliary: Mapping[str, AuxiliaryPlan]
    watched: Collection[str]
    names: Names = field(default_factory=lambda: Names(set(_RESERVED)))
    body: Lines = field(default_factory=lambda: Lines(depth=2))
    words: dict[int, str] = field(default_factory=dict)  # of variables, by id
    arguments: dict[str, str] = field(default_factory=dict)  # of views that are looked up
    batched: dict[str, Lookup] = field(default_factory=dict)  # probes for many rows at once, by view
    product: ProductCode | None = None
    rows: int = OUTCOME_ROWS  # that are added together,
    room: int = 0  # and the words of these
    parts: Sequence[Part] = ()
    """Statements that are done by its first steps."""
    rooms: dict[str, int] = field(default_factory=dict)  # words for what else is put together, by name
    payload_rooms: PayloadRooms = field(default_factory=PayloadRooms)

    given: ClassVar[tuple[str, ...]] = ("keys", "words", "rows", "pool")
    """Its arguments before the views."""
    finder: ClassVar[str] = "find_rows"
    """The step that finds records for many rows."""

    def code(self) -> StatementCode:
        """Print it; raises NotCompilable."""
        self.update = update = with_parts(self.update, self.parts)
        self._row = RowExpressions(self.body, self.names, self._load, self._load_text)
        self._outcomes = [self._outcome(part) for part in self.parts]
        self._overlaid = overlaid_range(update, self.pools)
        delta, target = self.pools[update.delta], self.pools[update.target]
        if update.keep is not None:
            raise NotCompilable("a part of the outcome for each partition")
        plain, noted, lines = self._is_plain(delta, target), update.target in self.watched, Lines()
        self._check(target, plain)
        lines(f'"""{" ".join(update_text(update).split())[:110]}"""')
        for part in self.parts:
            lines.note(f"and {update_text(part.update)}")
        if plain:
            self._add(lines, target, "rows", "keys", "words")
            lines("return result")
        else:
            self._print_loop(lines, delta, target)
        orders = range(len(target.orders))
        added, names = list[str](), list[str]()
        for each in self._outcomes:
            added += [*[touched_name(each.update.target)] * bool(each.touched), each.update.target]
            names += [*(each.touched, each.noting) * bool(each.touched), each.target, each.pool]
        added += [touched_name(target.name)] if noted else []
        added += [order_name(target.name, i) for i in orders] + [target.name] * (not target.is_ordered)
        names += ["touched", "noting"] if noted else []
        names += [name for i in orders for name in (f"sorted_{i}", f"sorting_{i}")]
        given = ["steps", *(StatementPrinter.given if plain else self.given), *["trial"] * self.is_checked]
        given += [*self.arguments.values(), *names]
        head = f"def {self.function}({', '.join([*given, *['target'] * (not target.is_ordered)])}):"
        text = "\n".join(["@called", head, *lines.lines]) + "\n"
        lists = (*self.arguments, *added), tuple(added), tuple(self.body.texts)
        rest = self.product, self.room, self.is_checked
        return StatementCode(self.function, text, update.delta, target.name, *lists, *rest)

    def _print_loop(self, lines: Lines, delta: PoolPlan, target: PoolPlan) -> None:
        """Print the loop over the rows of the delta."""
        update = self.update
        self.body.depth += bool(self._overlaid)
        for i, variable in enumerate(update.variables):
            self.bind(variable, f"load(keys, {len(update.variables)} * row + {i})")
        given = [(delta.payload, update.picks, "given")]
        self.body(f"given = words + row * {8 * delta.payload.width}")
        for number, step in enumerate(update.steps):
            match step:
                case Lookup(row=RowFields() as row):
                    self._look_at_row(step, row)
                case Lookup():
                    given.append((self.pools[step.source].payload, step.picks, self._look_up(step)))
                case FilterStep(predicate):
                    self._filter(predicate)
                case Let(variable, value):
                    self.bind(variable, self._let(variable, value))
            self._emit_parts(number + 1, given)
        self._emit(target, given)
        self._begin(lines, target)
        for name, words in self.rooms.items():
            lines(f"{name} = room_of(steps) + {8 * self.room}")
            self.room += words
        if self.parts and (self.is_checked or self._overlaid):
            raise NotCompilable("statements that are done by others, which may have no answer, or overlay ranges")
        if self.is_checked:
            lines("fits, beyond = 1, 0")
        if self._overlaid:
            lines(f"for start in range(0, rows, {OVERLAID_ROWS}):")
            lines("    noted = 0")
            lines(f"    for row in range(start, min(start + {OVERLAID_ROWS}, rows)):")
        else:
            lines("for row in range(rows):")
            self._look_ahead(lines)
        lines.lines += self.body.lines
        if self.is_checked:
            lines("if trial & beyond != 0:")
            lines(f"    return {ONLY_CHECKED}")
        self._end(lines, target)

    @property
    def is_checked(self) -> bool:
        """True if there may be no answer."""
        return self._row.checks > 0

    def count_check(self) -> None:
        """Note that there may be no answer."""
        self._row.checks += 1

    def check(self) -> None:
        """Print that the function ends where a value has no answer."""
        if self.is_checked:
            self.body("if fits == 0:")
            self.body("    return -1")

    def room_for(self, title: str, words: int) -> str:
        """Name room for so many words."""
        name = self.names(title)
        self.rooms[name] = words
        return name

    def rebind(self, words: Mapping[int, str]) -> None:
        """Bind variables anew, and forget what was computed of them."""
        self.words.update(words)
        self._row = RowExpressions(self.body, self.names, self._load, self._load_text, self._row.checks)

    def value_where(self, predicate: Expr, variable: Column, word: str) -> str:
        """Print a predicate with a word for a variable that is not NULL, and of a wide decimal in its order."""

        def load(column: Column) -> Value:
            if column == variable:
                return print_key(variable, word, row, in_order=True)
            return print_key(column, self.words[column.id], row)

        row = RowExpressions(self.body, self.names, load, self._load_text)
        code = row.value(predicate).code
        self._row.checks += row.checks
        return code

    def _begin(self, lines: Lines, target: PoolPlan) -> None:
        """Print what comes before the rows."""
        self.room = self.rows * (len(target.keys) + target.payload.width)
        lines("added, repeats, out_keys = 0, 0, room_of(steps)")
        lines(f"out_words = out_keys + {8 * self.rows * len(target.keys)}")
        for each in self._outcomes:
            pool = self.pools[each.update.target]
            lines(f"{each.added}, {each.keys} = 0, room_of(steps) + {8 * self.room}")
            lines(f"{each.words} = {each.keys} + {8 * self.rows * len(pool.keys)}")
            self.room += self.rows * (len(pool.keys) + pool.payload.width)

    def _end(self, lines: Lines, target: PoolPlan) -> None:
        """Print what comes after them."""
        for each in self._outcomes:
            each.add(lines)
        self._add(lines, target, "added")
        lines("return repeats | result")

    def _add(self, lines: Lines, target: PoolPlan, rows: str, keys: str = "out_keys", words: str = "out_words") -> None:
        """Print that rows are added to the target and its sorted indexes, their groups noted before if somebody has to
        know."""
        added = f"target, {keys}, {words}, {rows}, steps"
        if target.name in self.watched:
            lines(f"result = add_noted_rows(touched, {added}, noting, pool)")
        else:
            lines("result = 0" if target.is_ordered else f"result = add_rows({added}, pool)")
        for i in range(len(target.orders)):
            lines(f"if sort_rows(sorted_{i}, {keys}, {words}, {rows}, steps, sorting_{i}) < 0:")
            lines("    return -2")
        if not target.is_ordered:
            lines("if result < 0:")
            lines("    return result")

    def _look_ahead(self, lines: Lines) -> None:
        """Print what is done for 64 rows at a time: what lookups find.

        A row that found nothing looks no further.
        """
        width, calls, before = len(self.update.variables), list[str](), "0"
        for step in self.update.steps:
            if not isinstance(step, Lookup) or step.range or (columns := self._columns_of(step)) is None:
                continue
            pool, where = self.arguments[step.source], f"keys + {8 * width} * row"
            rows = f"{where}, {width}, {columns}, min(64, rows - row)"
            if self.batched.get(step.source) is step:
                calls.append(f"{self.finder}({pool}, {rows}, {before}, steps)")
                if step.row is None:
                    before = f"records_found({pool})"
            elif step.method == "slice" and self._is_batched(step):
                calls.append(f"find_entries({pool}, {step.index}, {rows}, steps)")
        if calls:
            lines("    if row & 63 == 0:")
        for call in calls:
            lines(f"        {call}")

    def _columns_of(self, step: Lookup) -> int | None:
        """Encode which keys of the delta a lookup's are, four bits each; None if it has others."""
        given = [v.id for v in self.update.variables]
        places = [(position, given.index(v.id)) for position, v in step.bound_keys if v.id in given]
        if len(places) < len(step.bound_keys) or any(max(place) >= 15 for place in places):
            return None
        return sum(column << 4 * position for position, column in places)

    def _is_batched(self, step: Lookup) -> bool:
        """True if what a lookup finds is found for many rows at once: that of the first step, by keys of the delta."""
        return step is self.update.steps[0]

    def _is_plain(self, delta: PoolPlan, target: PoolPlan) -> bool:
        """True if the rows of the delta, as they are, are added."""
        return self.update.is_copy and delta.payload == target.payload

    def _check(self, target: PoolPlan, is_plain: bool) -> None:
        sources = {step.source for step in self.update.steps if isinstance(step, Lookup)}
        if target.name in sources:
            raise NotCompilable(f"{target.name}, which it reads and changes")
        for name in (*sources, self.update.delta, target.name):
            pool = self.pools.get(name)
            if pool is None:
                raise NotCompilable(f"{name}, which is no view")
            if not is_plain:
                self._check_payload(pool.payload)

    def _check_payload(self, payload: Payload) -> None:
        """Raise NotCompilable for a payload that is not multiplied here."""
        scalar_rings(payload)

    def _find(self, step: Lookup, pool: str) -> str:
        """Print how the record of a probe is found."""
        record = self.names("record")
        if step.source not in self.batched and self._columns_of(step) is not None and self._is_batched(step):
            self.batched[step.source] = step
            self.body(f"{record} = found_at({pool}, row)")
            return record
        self.body(f"{record} = find({pool}, {self._key_of(step, pool)}, steps)")
        return record

    def _key_of(self, step: Lookup, pool: str) -> str:
        """Print the key of a lookup."""
        room = self.names("key")
        self.body(f"{room} = key_room({pool})")
        for position, variable in step.bound_keys:
            self.body(f"store({room}, {position}, {self.words[variable.id]})")
        return room

    def bind(self, variable: Column, code: str) -> None:
        """Print that a variable has a word."""
        self.words[variable.id] = name = self.names(variable.name)
        self.body(f"{name} = {code}")

    def _argument(self, pool: str) -> str:
        """Name the frame of a pool that is given."""
        if pool not in self.arguments:
            self.arguments[pool] = self.names(pool)
        return self.arguments[pool]

    def _look_at_row(self, step: Lookup, row: RowFields) -> None:
        """Print a look at whether an auxiliary relation has a row, perhaps as before the batch."""
        aux = self.auxiliary.get(row.relation)
        if aux is None or step.method != "probe":
            raise NotCompilable(f"{step.method} {row.relation}[{step.source}]")
        check_rows(aux)
        source, payload = self._argument(step.source), self.names("payload")
        width, record = aux.source.payload.width, self._find(step, source)
        stored = self.payload_rooms.print(source, record, aux.source.payload)
        self.body(f"{payload} = {stored} if {record} >= 0 else 0")
        if row.is_before:
            touched = self._argument(touched_name(step.source))
            with self.body.block(f"if count_of({touched}) != 0:"):
                self.body(f"{record} = find({touched}, {self._key_of(step, touched)}, steps)")
                self.body(f"if {record} >= 0:")
                self.body(f"    {payload} = words_of({touched}, {record}, {width})")
        count = aux.source.payload.offsets[aux.output.count]
        self.body(f"if {payload} == 0 or load({payload}, {count}) == 0:")
        self.body("    continue")
        made = dict(aux.output.items)
        measures = {m.column: m for m in aux.output.measures}

        def load(column: Column) -> Value:
            if column not in measures:
                raise NotCompilable(f"{column} of {row.relation}")
            return print_measure(self._row, aux, column, measures[column], payload)

        parts = RowExpressions(self.body, self.names, load, self._load_text)
        for title, variable in row.fields:
            if variable.id in step.live:
                self.bind(variable, self._row.key_word(parts.value(made[title]), variable.type))
        self._row.checks += parts.checks

    def _look_up(self, step: Lookup) -> str:
        """Print a lookup; what follows is for each record that it finds. Returns where its payload is."""
        source = self.pools[step.source]
        if step.range:
            index = self._argument(order_name(step.source, step.index))
            return RangePrinter(self, step, source.orders[step.index], index).look_up(step is self._overlaid)
        if source.is_ordered:
            raise NotCompilable(f"{step.method} {step.source}, which is its sorted indexes")
        pool = self._argument(step.source)
        width = len(source.keys)
        match step.method:
            case "probe":
                record = self._find(step, pool)
                self.body(f"if {record} < 0:")
                self.body("    continue")
            case "slice":
                entry, i, record = self.names("entry"), self.names("i"), self.names("record")
                if self._columns_of(step) is not None and self._is_batched(step):
                    self.body(f"{entry} = found_at({pool}, row)")
                else:
                    self.body(f"{entry} = slice_of({pool}, {step.index}, {self._key_of(step, pool)}, steps)")
                self.body(f"for {i} in range(length_of({pool}, {step.index}, {entry})):")
                self.body.depth += 1
                self.body(f"{record} = record_of({pool}, {step.index}, {entry}, {i})")
            case "scan":
                record = self.names("record")
                self.body(f"for {record} in range(count_of({pool})):")
                self.body.depth += 1
            case _:
                raise NotCompilable(f"{step.method} {step.source}")
        for position, variable in step.binds:
            if variable.id in step.live:
                self.bind(variable, f"key_word({pool}, {record}, {width}, {position})")
        payload = self.names("payload")
        self.body(f"{payload} = {self.payload_rooms.print(pool, record, source.payload)}")
        return payload

    def _filter(self, predicate: Expr) -> None:
        """Print that rows go for which a predicate is not TRUE."""
        tests = list[str]()
        for part in conjuncts(predicate):
            test = self._compare(part)
            tests.append(f"{self._row.value(part).code} == 1" if test is None else test)
        self.check()
        self.body(f"if not ({' and '.join(tests)}):")
        self.body("    continue")

    def _load(self, column: Column) -> Value:
        return print_key(column, self.words[column.id], self._row)

    def _load_text(self, column: Column) -> Text:
        return print_text(column, self.words[column.id], self._row)

    def _compare(self, predicate: Expr) -> str | None:
        """Print a comparison of two keys, or of a key with a constant, if their words compare as their values do; None
        for others."""
        match predicate:
            case Call(name, (Column() as left, Column() as right)) if name in MIRRORED:
                texts = left.type == right.type and left.type.kind is Kind.VARCHAR and name in ("=", "<>")
                plain = is_plain(left.type) and is_plain(right.type) and are_stored_alike(left.type, right.type)
                if texts or plain:
                    a, b = self.words[left.id], self.words[right.id]
                    known = (f"{w} != {constant(null_of(v.type))}" for w, v in ((a, left), (b, right)) if v.nullable)
                    return " and ".join([f"{a} {_OPERATORS[name]} {b}", *known])
            case Call(name, (Literal(), Column())) if name in MIRRORED:
                return self._compare(replace(predicate, name=MIRRORED[name], args=predicate.args[::-1]))
            case Call(name, (Column() as left, Literal(value, type))) if name in MIRRORED and value is not None:
                if is_own_key(value, left.type) and are_stored_alike(left.type, type):
                    word = self.words[left.id]
                    apart = [f"{word} != {constant(NULL)}"] if left.nullable else []
                    return " and ".join([f"{word} {_OPERATORS[name]} {constant(int(value))}", *apart])
        return None

    def _let(self, variable: Column, value: Expr) -> str:
        match value:
            case Column() as column if are_stored_alike(column.type, variable.type):
                return self.words[column.id]
            case Literal(None):
                return constant(null_of(variable.type))
            case Literal(word) if is_own_key(word, variable.type):
                return constant(int(word))
        if value.type != variable.type:
            raise NotCompilable(f"let {variable} := {value}, a {value.type}")
        return self._row.text_key(value) if value.type.kind is Kind.VARCHAR else self._row.key(value)

    def _outcome(self, part: Part) -> AddedRows:
        """Name what is put together for a part."""
        self._check(self.pools[part.update.target], False)
        titles = "target", "pool", "added", "out keys", "out words"
        noted = ("touched", "noting") if part.update.target in self.watched else ()
        return AddedRows(part.update, *map(self.names, (*titles, *noted)))

    def _emit_parts(self, steps: int, given: Sequence[tuple[Payload, tuple[int, ...], str]]) -> None:
        """Print what the parts of so many steps add."""
        for part, outcome in zip(self.parts, self._outcomes, strict=True):
            if part.steps == steps:
                own = [(payload, picks, where) for (payload, _, where), picks in zip(given, part.picks, strict=True)]
                words, row = self.words, self._row  # NB: what has a number in both need not be the same
                self.words = {id: words[v.id] for id, v in part.names.items() if v.id in words}
                self._row = RowExpressions(self.body, self.names, self._load, self._load_text, row.checks)
                with self._emitting(self.pools[part.update.target], own, outcome):
                    outcome.add(self.body)
                    self.body(f"{outcome.added} = 0")
                row.checks = self._row.checks
                self.words, self._row = words, row

    def _emit(self, target: PoolPlan, given: Sequence[tuple[Payload, tuple[int, ...], str]]) -> None:
        """Print the product of payloads, and how it is added to the target."""
        with self._emitting(target, given, AddedRows(self.update)):
            if self.is_checked:
                self.body("if trial != 0:")
                self.body("    added, beyond = 0, 1")
                self.body("    continue")
            self._add(self.body, target, "added")
            self.body("added, repeats = 0, repeats | result")

    @contextmanager
    def _emitting(
        self, target: PoolPlan, given: Sequence[tuple[Payload, tuple[int, ...], str]], to: AddedRows
    ) -> Iterator[None]:
        """Print how a product of payloads is put to others; within it what is done when they are many."""
        lanes, width, broad = list[tuple[str, Ring, int]](), len(target.keys), target.payload.width
        for lane, (ring, at) in enumerate(zip(scalar_rings(target.payload), target.payload.offsets, strict=True)):
            if to.update.lanes[lane] is None:
                continue
            own = to.update.lanes[lane] or ()
            constants = [f.value for f in own if isinstance(f, Literal) and isinstance(f.value, int)]
            times, values = prod(constants), tuple(f for f in own if not isinstance(f, Literal))
            is_whole = all(f.type.is_exact or f.type.kind is Kind.BOOLEAN for f in values)
            if len(constants) + len(values) < len(own) or not is_whole or (values and ring >= Ring.REAL):
                raise NotCompilable(f"a factor {', '.join(map(str, own))}")
            picked = ((p, picks[lane], where) for p, picks, where in given if picks)
            factors = [(scalar_rings(p)[pick], p.offsets[pick], where) for p, pick, where in picked]
            if ring >= Ring.REAL:
                place = f"{to.words} + {8 * broad} * {to.added} + {8 * at}"
                lanes.append((print_real_product(self.body, self.names, ring, factors, times, place), ring, at))
                continue
            value = self._row.product(values).code if values else ""
            lanes.append((print_product(self.body, self.names, ring, factors, times, value), ring, at))
        changes = [word for value, _, _ in lanes for word in value.split(", ")]
        if not changes:
            raise NotCompilable("a statement that adds nothing")
        self.check()
        with self.body.block(f"if {' | '.join(changes)} != 0:"):
            for i, key in enumerate(to.update.keys):
                self.body(f"store({to.keys}, {width} * {to.added} + {i}, {self.words[key.id]})")
            given_words = {at + i: word for value, _, at in lanes for i, word in enumerate(value.split(", "))}
            there = {at + i for _, ring, at in lanes if ring >= Ring.REAL for i in range(ring.words)}
            for i in range(broad):
                if i not in there:
                    self.body(f"store({to.words}, {broad} * {to.added} + {i}, {given_words.get(i, '0')})")
            self.body(f"{to.added} += 1")
            with self.body.block(f"if {to.added} == {self.rows}:"):
                yield
