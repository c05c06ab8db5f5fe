"""A plan's triggers, printed: a function for each delta of a feed, and one for each run of statements.

Statements that stand together are one function, so that a batch calls few; where one is refused, or a Derive stands
between, the run ends.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cached_property, partial

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, LaneRing
from squallpy.codegen.derivations import DerivationCode, print_derivation
from squallpy.codegen.domains import find_domain
from squallpy.codegen.extremes import print_extremes
from squallpy.codegen.fusion import Part, find_parts
from squallpy.codegen.group_code import GroupCode
from squallpy.codegen.imports import IMPORTED, import_lines
from squallpy.codegen.model_rows import print_model_rows
from squallpy.codegen.names import Lines, Names, NotCompilable, text_lines
from squallpy.codegen.pre_aggregation import print_group
from squallpy.codegen.products import ProductPrinter
from squallpy.codegen.statement_code import ONLY_CHECKED, ProductCode, StatementCode, order_name
from squallpy.codegen.statements import StatementPrinter
from squallpy.physical.plan import Plan, Update
from squallpy.program.auxiliary.model_rows import ModelRows

MOST_LINES = 4_000
"""The lines of a plan's code: LLVM takes a second for some hundred, and minutes for functions of thousands."""
_STEPS_AT = 0  # the first word that a function is given; then of each delta its keys, payloads and rows; then frames

_HEAD = '''"""Triggers of a query, printed."""

{imports}

LEAST_WORD = -(2**63)
entry = kernel("int64(int64)")
'''


@dataclass(frozen=True, slots=True)
class RunCode:
    """A printed function that runs statements which stand together.

    Args:
        stage: The number of its stage.
        first: The number of the first step there, and of the one behind the last.
        deltas: The deltas that it reads.
        pools: The pools that it reads and changes.
        targets: Those that it changes, sorted indexes among them.
        unique: Views whose counts it watches, each with the delta that is added to it; it notes whether one came to be
            more than 1.
        room: Words of the most rows that a statement adds together.
        constants: Texts that it has.
        products: The products of cofactor rings that statements add up.
        orders: Which of the pools are sorted indexes: the view, and the number there.
        is_checked: It may have no answer; then nothing was changed.
    """

    function: str
    text: str
    stage: int
    first: int
    stop: int
    deltas: tuple[str, ...]
    pools: tuple[str, ...]
    targets: tuple[str, ...]
    unique: tuple[tuple[str, str], ...]
    room: int
    constants: tuple[str, ...]
    products: tuple[ProductCode, ...] = ()
    orders: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    is_checked: bool = False

    @property
    def words(self) -> int:
        """Number of words that it is given."""
        return self.notes + len(self.unique)

    @property
    def frames(self) -> int:
        """The word at which the frames of pools begin."""
        return 1 + 3 * len(self.deltas)

    @property
    def products_at(self) -> int:
        """The word at which the addresses of products begin."""
        return self.frames + len(self.pools)

    @property
    def notes(self) -> int:
        """The word at which it notes what it found of unique views."""
        return self.products_at + len(self.products)


@dataclass(frozen=True)
class PlanCode:
    """The printed functions of a plan, and what is refused, each with the reason."""

    groups: tuple[GroupCode, ...]
    runs: tuple[RunCode, ...]
    derivations: tuple[DerivationCode, ...]
    refused: tuple[tuple[str, str], ...]

    @cached_property
    def text(self) -> str:
        """The module that has them."""
        parts = [each.text for each in self.groups] + [each.text for each in self.runs]
        parts += [each.text for each in self.derivations]
        constants = [text for group in self.groups for text in group.constants]
        constants += [text for run in self.runs for text in run.constants]
        constants += [text for each in self.derivations for text in each.constants]
        if constants:
            parts.insert(0, text_lines(constants))
        body = "\n\n".join(parts)
        return "\n\n".join([_HEAD.format(imports=import_lines(f"{body} kernel")), body])

    @property
    def explained(self) -> str:
        """The module, and what it is without."""
        lines = [f"# not compiled: {what}, for {reason}\n" for what, reason in self.refused]
        return self.text + ("\n\n" + "".join(lines) if lines else "")


def print_plan(plan: Plan) -> PlanCode:
    """Print what can be of a plan: derivations only of one that is in one partition."""
    names, refused = Names({*IMPORTED, "entry"}), list[tuple[str, str]]()
    groups = list[GroupCode]()
    for feed in plan.sources:
        for delta, payload in zip(feed.deltas, feed.payloads, strict=True):
            try:
                if delta.name in feed.row_deltas or feed.relation.source.is_keyed:
                    raise NotCompilable("rows that are not added up")
                signed = feed.relation.source.is_signed
                groups.append(print_group(delta, payload, names(f"group {delta.name.lstrip('Δ')}"), signed))
            except NotCompilable as reason:
                refused.append((delta.name, str(reason)))
    runs = tuple(run for number in range(len(plan.stages)) for run in _Runs(plan, number, names, refused).runs())
    derivations = list[DerivationCode]()
    for feed in plan.feeds if plan.partitions == 1 else ():
        for delta, payload in zip(feed.deltas, feed.payloads, strict=True) if feed.auxiliary else ():
            assert feed.auxiliary
            try:
                function, relation = names(f"derive {delta.name.lstrip('Δ')}"), feed.relation.name
                printer = print_model_rows if isinstance(feed.auxiliary.kind, ModelRows) else print_derivation
                printer = print_extremes if feed.auxiliary.output.aggregated_key else printer
                if printer is print_derivation:
                    printer = partial(print_derivation, domain=find_domain(plan, feed, delta))
                derivations.append(printer(relation, delta, payload, feed.auxiliary, function))
            except NotCompilable as reason:
                refused.append((delta.name, str(reason)))
    return _within(MOST_LINES, PlanCode(tuple(groups), runs, tuple(derivations), tuple(refused)))


def _within(most: int, code: PlanCode) -> PlanCode:
    """Refuse what has no room in so many lines: deltas have it first, then statements, in their order."""
    left, refused = most, list(code.refused)

    def has_room(what: str, text: str) -> bool:
        nonlocal left
        lines = text.count("\n")
        if lines <= left:
            left -= lines
            return True
        refused.append((what, f"{lines:,} lines of code, where the code of a plan has at most {most:,}"))
        return False

    groups = tuple(each for each in code.groups if has_room(each.function, each.text))
    runs = tuple(each for each in code.runs if has_room(f"statements {each.first + 1} to {each.stop}", each.text))
    derivations = tuple(each for each in code.derivations if has_room(each.function, each.text))
    return PlanCode(groups, runs, derivations, tuple(refused))


class _Runs:
    """The statements of a stage as functions."""

    def __init__(self, plan: Plan, number: int, names: Names, refused: list[tuple[str, str]]) -> None:
        self._stage, self._number, self._names, self._refused = plan.stages[number], number, names, refused
        self._pools = {pool.name: pool for pool in (*plan.pools, *plan.deltas, *plan.results)}
        self._watched = {line.view for line in plan.on_grid}
        self._auxiliary = {feed.relation.name: feed.auxiliary for feed in plan.feeds if feed.auxiliary}
        self._noted = {aux.source.name for aux in self._auxiliary.values() if aux.kind.has_groups} - self._watched
        self._unique = {unique.view for unique in plan.unique}
        self._blocks = {name for name, pool in self._pools.items() if any(map(_is_block, pool.payload.rings))}
        sorted_views = {name for name, pool in self._pools.items() if pool.orders}
        self._fixed = self._unique | self._blocks | sorted_views

    def runs(self) -> Iterator[RunCode]:
        """Print each longest run of statements that can be printed."""
        run, first = list[tuple[Update, StatementCode]](), 0
        for number, step in enumerate(self._stage.steps):
            code = self._statement(step) if isinstance(step, Update) else None
            if run and (code is None or code.is_checked or code.delta in {each.target for _, each in run}):
                yield self._run(self._fused(run), first, number)
                run = []
            if code and isinstance(step, Update):
                first = first if run else number
                run.append((step, code))
        if run:
            yield self._run(self._fused(run), first, len(self._stage.steps))

    def _fused(self, run: Sequence[tuple[Update, StatementCode]]) -> list[StatementCode]:
        """Let statements do others with their first steps, where they can be."""
        codes, done = list[StatementCode](), set[int]()
        for number, (update, code) in enumerate(run):
            if number in done:
                continue
            parts = {n: part for n, part in find_parts(number, run, self._fixed) if n not in done}
            with suppress(NotCompilable):
                if parts and update.target not in self._blocks:
                    code = self._printer(update, code.function, [*parts.values()]).code()
                    done |= parts.keys()
            codes.append(code)
        return codes

    def _statement(self, update: Update) -> StatementCode | None:
        try:
            if update.target in self._watched:
                raise NotCompilable(f"{update.target}, of which somebody else has to know")
            is_unique = update.target in self._unique
            if is_unique and not _keeps_counts(update):
                raise NotCompilable(f"{update.target}, whose PRIMARY KEY is checked")
            return self._printer(update, self._names(f"add to {update.target}")).code()
        except NotCompilable as reason:
            self._refused.append((f"{update.delta} → {update.target}", str(reason)))
            return None

    def _printer(self, update: Update, function: str, parts: Sequence[Part] = ()) -> StatementPrinter:
        kind = ProductPrinter if update.target in self._blocks else StatementPrinter
        return kind(update, self._pools, function, self._auxiliary, self._noted, parts=parts)

    def _run(self, run: list[StatementCode], first: int, stop: int) -> RunCode:
        deltas = tuple(dict.fromkeys(each.delta for each in run))
        pools = tuple(dict.fromkeys(pool for each in run for pool in each.pools))
        targets = tuple(dict.fromkeys(pool for each in run for pool in each.added))
        unique = tuple((each.target, each.delta) for each in run if each.target in self._unique)
        products = tuple(each.product for each in run if each.product)
        function, first_product = self._names("apply"), 1 + 3 * len(deltas) + len(pools)
        lines, answers = Lines(), "−1: no answer, " if run[0].is_checked else ""
        lines(f'"""Run statements {first + 1} to {stop} of a batch; {answers}−2: no memory."""')
        lines(f"steps = load(given, {_STEPS_AT})")
        local = {pool: f"pool_{number}" for number, pool in enumerate(pools)}
        every = [(view.name, i) for view in self._pools.values() for i in range(len(view.orders))]
        orders = {name: place for place in every if (name := order_name(*place)) in pools}
        for number, pool in enumerate(pools):
            place = f"load(given, {1 + 3 * len(deltas) + number})"
            lines(f"{local[pool]} = {place if pool in orders else f'frame_at({place})'}  # {pool}")
        multiplied = iter(range(first_product, first_product + len(products)))
        watched = iter(range(first_product + len(products), first_product + len(products) + len(unique)))
        for each in run:
            at = 1 + 3 * deltas.index(each.delta)
            given = f"load(given, {at}), load(given, {at + 1}), load(given, {at + 2})"
            frames = ", ".join(self._frames(each, pools, local))
            given += f", {pools.index(each.target) if each.target in pools else 0}" + (
                f", load(given, {next(multiplied)})" if each.product else ""
            )
            call = f"{each.function}(steps, {given}{', %s' if each.is_checked else ''}, {frames})"
            lines(f"result = {call % 1 if each.is_checked else call}")
            if each.is_checked:
                lines(f"if result == {ONLY_CHECKED}:")
                lines(f"    result = {call % 0}")
            lines("if result < 0:")
            lines("    return result")
            if each.target in self._unique:
                lines(f"store(given, {next(watched)}, result)")
        lines("return 0")
        text = "\n\n".join(
            [*(each.text for each in run), "\n".join(["@entry", f"def {function}(given):", *lines.lines])]
        )
        constants, room = tuple(text for each in run for text in each.constants), max(each.room for each in run)
        text += "\n"
        return RunCode(
            *(function, text, self._number, first, stop, deltas, pools, targets, unique, room, constants, products),
            *(orders, run[0].is_checked),
        )

    def _frames(self, each: StatementCode, pools: tuple[str, ...], local: Mapping[str, str]) -> Iterator[str]:
        """Name the frames that a statement is given, behind those of what it lets grow, but for its target, numbers."""
        for pool in each.pools:
            yield local[pool]
            if pool in each.added and pool != each.target:
                yield str(pools.index(pool))


def _is_block(ring: LaneRing) -> bool:
    return isinstance(ring, Cofactor)


def _keeps_counts(update: Update) -> bool:
    """True if each row of the delta is added as often as the delta has it."""
    return not update.steps and update.keys == update.variables and update.picks[:1] == (0,)
