"""What OVER looks at of a block, as aggregates of the block beside its rows.

    SUM(x) OVER (PARTITION BY k) of r
    →  r joined with (Aggregate by k: SUM(x) of r) ON k <=> k
    SUM(x) OVER (PARTITION BY k ORDER BY t) of r
    →  r joined with (Aggregate by k, t: SUM(x) of DISTINCT k, t of r joined with r ON k <=> k AND r.t <= t) ON …

A NULL is in the partition of NULLs, and in an order before or behind all else. What comes before by an order of several
keys is a Union: the rows that come before by the first, those that are alike in it and come before by the second …
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, INT
from squallpy.logical.apply import domains
from squallpy.logical.bind.aggregates.collector import Aggregation
from squallpy.logical.bind.composite_key import packed
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime.intervals import arithmetic, involves_time, unbounded
from squallpy.logical.containment import narrowed
from squallpy.logical.expressions import FALSE, TRUE, Column, Expr, Literal, columns, conjunction, not_null
from squallpy.logical.functions import call, not_distinct
from squallpy.logical.nodes import Agg, Aggregate, Beside, Filter, Join, LeftJoin, Node, Project, Repeat, Union
from squallpy.logical.properties import has_one_row, unique_columns

ALL, UPTO, BEFORE, VALUES = "all", "up to", "before", "values before"
NEAR, GROUPS, WITHIN = "near", "groups near", "within"
MOST_KEYS = 8  # of an order with what tells rows apart, each of which is some products more
Bound = tuple[int, Literal]  # −1 before, +1 behind or 0, and how far
HERE: Bound = (0, Literal(0, INT))
PREVIOUS: Bound = (-1, Literal(1, INT))
Key = tuple[Expr, bool, bool]  # expression, descending, NULLs first
Items = tuple[tuple[Column, Expr], ...]
Rewrite = Callable[[Expr], Expr]


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows that OVER looks at: of one partition, and of those ALL, those UPTO a row and its like, those BEFORE it,
    or the VALUES before it, each once; so many rows NEAR it, or GROUPS of those alike, or those WITHIN a distance, from
    `low` to `high`, None for all on that side. `alone`: by an order in which no rows are alike, which is what `asker`
    asks for: LAG and LEAD are of one frame. `reverse`: what is added to make it one goes the other way. `declared`: a
    PRIMARY KEY is believed to tell rows apart; the view of its rows has to be checked (`physical/unique_keys.py`)."""

    partition: tuple[Expr, ...]
    order: tuple[Key, ...]
    rows: str
    alone: bool = False
    low: Bound | None = None
    high: Bound | None = None
    reverse: bool = False
    declared: bool = False
    asker: str = field(default="", compare=False)

    @property
    def whole(self) -> bool:
        """Is the row itself among them, whatever there is?"""
        around = (self.low is None or self.low[0] <= 0) and (self.high is None or self.high[0] >= 0)
        return self.rows in (ALL, UPTO) or (self.rows in (NEAR, GROUPS, WITHIN) and around)

    def backwards(self) -> "Frame":
        """The same by the order from its end."""
        order = tuple((expr, not down, not nulls_first) for expr, down, nulls_first in self.order)
        return replace(self, order=order, reverse=self.alone and not self.reverse)

    def counted(self) -> "Frame":
        """The same by the numbers of rows, or of groups where some are alike."""
        if self.rows in (NEAR, GROUPS):
            return self
        return replace(self, rows=NEAR if self.alone else GROUPS, high={UPTO: HERE, BEFORE: PREVIOUS}.get(self.rows))

    @property
    def expressions(self) -> tuple[Expr, ...]:
        return (*self.partition, *(expr for expr, _, _ in self.order))

    def over(self, rewrite: Rewrite) -> "Frame":
        """The same in other terms, without what is constant, but for what a distance is of."""
        partition = dict.fromkeys(expr for expr in map(rewrite, self.partition) if columns(expr))
        order: dict[Expr, Key] = {}
        for expr, down, nulls_first in self.order:
            key = rewrite(expr)
            if self.rows == WITHIN or (columns(key) and key not in partition):
                order.setdefault(key, (key, down, nulls_first))
        return replace(self, partition=tuple(partition), order=tuple(order.values()))


def shortened(order: tuple[Key, ...], own: int, most: int) -> tuple[Key, ...]:
    """An order of more than `most` keys with what only tells rows apart, all but its `own` first ones, as one text."""
    if len(order) <= most or own == len(order):
        return order
    text, (_, down, nulls_first) = packed([expr for expr, _, _ in order[own:]]), order[own]
    return order if text is None else (*order[:own], (text, down, nulls_first))


@dataclass(frozen=True, slots=True)
class Beneath:
    """The rows of a block, which OVER reads. `around`: may the block stand over a domain?"""

    ctx: Context
    plan: Node
    around: bool

    def settled(self, frame: Frame) -> Frame:
        """The frame by an order without keys that say nothing more, made one in which no rows are alike if that is
        asked for; SQ3001 if nothing is known that tells them apart."""
        found = frame if frame.rows == WITHIN else self.apart(frame)
        if found is not None and len(found.order) > MOST_KEYS and len(found.order) > len(frame.order):
            found = None
        if found is not None or not frame.alone:
            return found or frame
        told = f"{frame.asker} by so many keys, none of which is known to tell rows apart, is not supported yet"
        hint = "declare a PRIMARY KEY and have it in FROM"
        raise SquallError("SQ3001", told, hint=f"{hint}, or use RANK" if frame.asker == "ROW_NUMBER" else hint)

    def apart(self, frame: Frame) -> Frame | None:
        """The frame by an order in which no rows are alike: by less than it has, or, if it asks for that, by what is
        known to tell them apart; None if nothing does."""
        known = frozenset(expr.id for expr in frame.partition if isinstance(expr, Column))
        for number in range(len(frame.order) + 1):
            known |= {expr.id for expr, _, _ in frame.order[:number] if isinstance(expr, Column)}
            if has_one_row(self.plan, known, frame.declared):
                return replace(frame, order=frame.order[:number])
        more = unique_columns(self.plan, frame.declared) if frame.alone else None
        if more is None:
            return None
        added = ((c, frame.reverse, not frame.reverse) for c in more if c.id not in known)
        return replace(frame, order=shortened((*frame.order, *added), len(frame.order), MOST_KEYS))

    def numbered(self, read: frozenset[int]) -> "Beneath":
        """The same rows, those that are alike in all that is `read` of them told apart by numbers.

        The columns of a declared PRIMARY KEY come first, for they mostly tell rows apart.
        """
        given = {c.id for domain in domains(self.plan) for c in domain.output}
        key = unique_columns(self.plan, declared=True) or ()
        every = dict.fromkeys((*key, *(c for c in self.plan.output if c.id in read)))
        kept: Items = tuple((c, c) for c in every if c.id not in given)
        copies, number = (self.ctx.column(name, BIGINT, False) for name in ("copies", "number"))
        once = Aggregate(self.plan, kept or ((self.ctx.like(TRUE), TRUE),), ((copies, Agg("count", None)),))
        return replace(self, plan=Repeat(once, copies, number))

    def join(self, left: Node, right: Node, on: Iterable[Expr], lost: bool = False) -> Node:
        """Rows of one domain's values side by side; `lost`: those of `left` stay that find none."""
        condition = conjunction(on)
        if self.around:
            return Beside(left, right, condition, lost)
        return LeftJoin(left, right, condition) if lost else Join(left, right, condition if condition != TRUE else None)

    def aggregated(self, frame: Frame, aggregation: Aggregation) -> tuple[Node, Items]:
        """The aggregates by what frames have in common, and which expressions of the rows that is."""
        if frame.rows == ALL or not frame.order:
            keys = self.ctx.copies(frame.partition)
            rows = self.plan if frame.whole else Filter(self.plan, FALSE)
            return aggregation.over(rows, keys), keys
        exprs = frame.expressions
        mine = self.ctx.copies(exprs)
        domain = Aggregate(narrowed(self.plan, {c.id for expr in exprs for c in columns(expr)}), mine, ())
        source, theirs = self.plan, exprs
        if frame.rows == VALUES:
            once = self.ctx.copies(exprs)
            source, theirs = Aggregate(self.plan, once, ()), tuple(c for c, _ in once)
        count = len(frame.partition)
        same = [not_distinct(a, b) for a, (b, _) in zip(theirs[:count], mine, strict=False)]
        ends = [c for c, _ in mine[count:]]
        parts = [self.join(domain, source, (*same, before)) for before in cases(frame, theirs[count:], ends)]
        shared = self.ctx.copies(c for c, _ in mine)
        rows, names = self.united(parts, (*(c for c, _ in mine), *aggregation.arguments))
        named = aggregation.in_terms_of(names.__getitem__)
        plan = named.over(rows, tuple((key, names[c]) for key, c in shared))
        pairs = zip((key for key, _ in shared), exprs, strict=True)
        return plan, tuple(pairs)

    def united(self, parts: Sequence[Node], exprs: Iterable[Expr]) -> tuple[Node, dict[Expr, Expr]]:
        """The rows of all parts, and what they call some expressions."""
        wanted = tuple(dict.fromkeys(exprs))
        if len(parts) == 1:
            return parts[0], {expr: expr for expr in wanted}
        every = tuple(self.ctx.like(expr) for expr in wanted)
        rows = tuple(Project(part, self.ctx.copies(wanted)) for part in parts)
        return Union(rows, every), dict(zip(wanted, every, strict=True))


def cases(frame: Frame, theirs: Sequence[Expr], mine: Sequence[Expr]) -> Iterator[Expr]:
    """When rows with `theirs` for keys are in the frame of one with `mine`; one at most is true."""
    if frame.rows == WITHIN:
        return within(frame, theirs[0], mine[0])
    return befores(theirs, mine, frame.order, frame.rows == UPTO)


def within(frame: Frame, a: Expr, b: Expr) -> Iterator[Expr]:
    """The same of a distance, where a NULL is as far from another as it gets."""
    ((_, down, nulls_first),) = frame.order
    near = []
    for bound, op in ((frame.low, "<=" if down else ">="), (frame.high, ">=" if down else "<=")):
        if bound is not None:
            way, moved = "+" if (bound[0] > 0) != down else "-", arithmetic if involves_time(b, bound[1]) else call
            test = call(op, a, moved(way, b, bound[1]) if bound[0] else b)
            near.append(replace(test, args=(test.args[0], unbounded(test.args[1]))) if bound[0] else test)
    yield conjunction(near)
    if a.nullable or b.nullable:
        yield conjunction((call("is_null", a), call("is_null", b)))
        if frame.low is None:
            first, then = (a, b) if nulls_first else (b, a)
            yield conjunction((call("is_null", first), not_null(then)))
        if frame.high is None:
            first, then = (b, a) if nulls_first else (a, b)
            yield conjunction((call("is_null", first), not_null(then)))


def befores(theirs: Sequence[Expr], mine: Sequence[Expr], order: tuple[Key, ...], upto: bool) -> Iterator[Expr]:
    """When rows with `theirs` for keys come before one with `mine`; `upto`: or are like it. Of the cases one at most is
    true."""
    same: list[Expr] = []
    for number, (a, b, (_, down, nulls_first)) in enumerate(zip(theirs, mine, order, strict=True), 1):
        last = upto and number == len(order)
        yield conjunction((*same, call((">" if down else "<") + ("=" if last else ""), a, b)))
        if a.nullable or b.nullable:
            first, then = (a, b) if nulls_first else (b, a)
            yield conjunction((*same, call("is_null", first), *(() if last else (not_null(then),))))
        same.append(not_distinct(a, b))
