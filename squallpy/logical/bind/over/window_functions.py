"""Window functions: what stands before OVER, and what in its parentheses.

    RANK() OVER (PARTITION BY k ORDER BY x)        →  1 + COUNT(*) of the rows of the partition before
    DENSE_RANK() OVER …                            →  1 + COUNT(*) of the values of the order before
    ROW_NUMBER() OVER …                            →  RANK in an order in which no rows are alike
    LAG(x) OVER …                                  →  x of the row that has the number before
    AVG(x) OVER (PARTITION BY k)                   →  AVG(x) of the rows of the partition

How those rows are found is in `frames`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from sqlglot import exp

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.types import BIGINT, DOUBLE, NULL, unify
from squallpy.frontend.unsupported import AGGREGATES as UNSUPPORTED
from squallpy.frontend.unsupported import QUERIES
from squallpy.functions.registry import AGGREGATES, WINDOWS
from squallpy.logical.bind.aggregates.calls import Called, aggregate, aggregate_name, check_ordered
from squallpy.logical.bind.aggregates.collector import Aggregation
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.datetime.intervals import lengths
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.order_by import constant_number
from squallpy.logical.bind.over.frame_aggregates import (
    ALL,
    BEFORE,
    GROUPS,
    NEAR,
    UPTO,
    VALUES,
    WITHIN,
    Beneath,
    Bound,
    Frame,
    Items,
    Key,
)
from squallpy.logical.bind.over.frame_bounds import extent
from squallpy.logical.coercion import coerce
from squallpy.logical.expressions import TRUE, Column, Expr, Literal, columns, conjunction, not_null, substitute
from squallpy.logical.functions import call, case, coalesce, not_distinct
from squallpy.logical.nodes import Aggregate, Filter, Node, Project

RANKS = {"RANK": BEFORE, "DENSE_RANK": VALUES, "ROW_NUMBER": BEFORE}
NUMBERED = {NEAR: BEFORE, GROUPS: VALUES}  # frames of numbers, which are of rows, or of what is alike
NEIGHBOURS = {"LAG": 1, "LEAD": -1}
ENDS = {"FIRST_VALUE": False, "FIRST": False, "NTH_VALUE": False, "LAST_VALUE": True, "LAST": True}  # from behind?
SHARES = ("PERCENT_RANK", "CUME_DIST", "NTILE")
ONE = Literal(1, BIGINT)
Grouped = Callable[[Expr, exp.Expr], Expr]  # an expression over what GROUP BY makes, and its node for messages


@dataclass(frozen=True, slots=True)
class Arguments(Scalars):
    """Binds an aggregate before OVER, whose arguments are what `rows` binds."""

    rows: Scalars | None = None

    def inner(self) -> Scalars:
        assert self.rows is not None
        return self.rows


@dataclass(frozen=True, slots=True)
class Framed:
    """The aggregates of one frame, and a column that is TRUE where it has rows."""

    aggregation: Aggregation
    node: exp.Expr
    found: Column
    shown: dict[Column, Column] = field(default_factory=dict)  # what they are called where there may be none


@dataclass(frozen=True, slots=True)
class Lookup:
    """The value `of` of the row that is some rows before, or that has a number."""

    frame: Frame
    distance: int | Literal
    of: Expr
    value: Column
    found: Column
    node: exp.Expr


@dataclass(slots=True)
class Overs:
    """The window functions of a block; `named` are its WINDOW clauses."""

    ctx: Context
    named: dict[str, exp.Window]
    frames: dict[Frame, Framed] = field(default_factory=dict)
    lookups: list[Lookup] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # of those named

    def check(self, s: Scalars) -> None:
        """Bind the windows that nothing uses, for their mistakes."""
        for name in self.named.keys() - self.used:
            window = exp.Window(alias=self.named[name].this.copy(), over="OVER")
            window.parent = self.named[name].parent
            self.written(window, replace(s, clause="WINDOW", overs=None))

    def made(self) -> frozenset[Column]:
        """The columns that they add."""
        columns = [c for f in self.frames.values() for c in (f.found, *f.aggregation.made, *f.shown.values())]
        return frozenset((*columns, *(c for lookup in self.lookups for c in (lookup.value, lookup.found))))

    def reads(self, grouped: Grouped | None = None) -> frozenset[int]:
        """List the columns that they read, by id; `grouped` gives an expression in terms of those of the Aggregate."""
        exprs = [
            (e, framed.node)
            for f, framed in self.frames.items()
            for e in (*f.expressions, *framed.aggregation.arguments)
        ]
        exprs += [(e, lookup.node) for lookup in self.lookups for e in (*lookup.frame.expressions, lookup.of)]
        return frozenset(c.id for e, node in exprs for c in columns(grouped(e, node) if grouped else e))

    def bind(self, s: Scalars, node: exp.Window) -> Expr:
        """The value of `function OVER (…)`."""
        function, where = node.this, None
        if isinstance(function, exp.Filter):
            function, where = function.this, function.expression.this
        function, ignoring = without_nulls(function)
        if not isinstance(function, exp.Anonymous | exp.WithinGroup):
            raise self.ctx.refuse(function)
        if isinstance(function, exp.WithinGroup):
            check_ordered(s, function)
        name = aggregate_name(function)
        rows = replace(s, clause="OVER", overs=None, aliases={})
        partition, order, spec = self.written(node, rows)
        if ignoring is not None and name not in (*ENDS, *NEIGHBOURS, "ANY_VALUE"):
            raise self.ctx.refuse(ignoring)
        if name in AGGREGATES and (name not in ENDS or not order):
            frame = replace(extent(rows, spec, name, order), partition=partition)
            if frame.rows == BEFORE:  # from here to the end is up to here from the end
                frame = replace(frame, rows=UPTO).backwards()
            elif frame.rows in NUMBERED and frame.low is None and is_next(frame.high, -1):
                frame = replace(frame, rows=BEFORE, high=None)  # all before
            elif frame.rows in NUMBERED and frame.high is None and is_next(frame.low, 1):
                frame = replace(frame, rows=BEFORE, low=None).backwards()
            return self.aggregate(rows, name, function, where, frame, order)
        assert isinstance(function, exp.Anonymous)
        if where is not None:
            raise SquallError("SQ2009", "FILTER goes with an aggregate", self.ctx.query.keyword(node, "FILTER"))
        if name not in (*RANKS, *NEIGHBOURS, *ENDS, *SHARES):
            if name in UNSUPPORTED:
                raise SquallError("SQ3001", f"{name} is not supported yet", self.head(function), UNSUPPORTED[name])
            known = (*AGGREGATES, *WINDOWS)
            told = f"{function.name} is no function that goes with OVER"
            raise SquallError("SQ2004", told, self.head(function), nearest(name, known))
        if not order:
            raise SquallError("SQ2009", f"{name} needs ORDER BY in its OVER", self.head(function))
        if spec is not None and name not in ENDS:
            raise SquallError("SQ2009", f"{name} takes no frame", self.head(function), "write ORDER BY alone")
        if name in RANKS:
            self.check_arity(name, function)
            return self.rank(Frame(partition, order, RANKS[name], name == "ROW_NUMBER", asker=name), node)
        if name in SHARES:
            return self.share(name, function, Frame(partition, order, BEFORE), node)
        frame = Frame(partition, order, BEFORE, alone=True, asker=name)
        if name in NEIGHBOURS:
            return self.neighbour(rows, name, function, frame, node, ignoring)
        return self.end(rows, name, function, frame, spec, node, ignoring)

    def head(self, function: exp.Anonymous) -> Span:
        return self.ctx.query.own(function)

    def check_arity(self, name: str, function: exp.Anonymous) -> None:
        """SQ2005 for a call with fewer or more arguments than its function takes."""
        least, most = WINDOWS[name].arity if name in WINDOWS else (AGGREGATES[name].least, AGGREGATES[name].most)
        assert most is not None
        count = len(function.expressions)
        if not least <= count <= most:
            wanted = " to ".join(map(str, sorted({least, most})))
            plural = "" if wanted == "1" else "s"
            told = f"{function.name.upper()} takes {wanted} argument{plural}, not {count}"
            raise SquallError("SQ2005", told, self.head(function))

    def written(
        self, node: exp.Window, rows: Scalars, seen: tuple[str, ...] = ()
    ) -> tuple[tuple[Expr, ...], tuple[Key, ...], exp.WindowSpec | None]:
        """PARTITION BY, ORDER BY and the frame, those of a WINDOW clause among them."""
        partition: tuple[Expr, ...] = ()
        order: tuple[Key, ...] = ()
        spec = node.args.get("spec")
        given = node.args.get("alias")
        if given is not None:
            name = given.name.lower()
            if name in seen:
                raise self.ctx.error("SQ2007", f'window "{given.name}" is made of itself', given)
            if name not in self.named:
                raise self.ctx.error("SQ2001", f'unknown window "{given.name}"', given, nearest(name, self.named))
            self.used.add(name)
            base = self.named[name]
            self.ctx.only(base, "this", "partition_by", "order", "spec", "alias", "over")
            partition, order, above = self.written(base, rows, (*seen, name))
            spec = spec or above
        if node.args.get("partition_by"):
            partition = tuple(rows.bind(expr) for expr in node.args["partition_by"])
        clause = node.args.get("order")
        if clause is not None:
            self.ctx.only(clause, "expressions")
            order = tuple(self.key(key, rows) for key in clause.expressions)
        return partition, order, spec

    def key(self, key: exp.Ordered, rows: Scalars) -> Key:
        self.ctx.only(key, "this", "desc", "nulls_first")
        with self.ctx.at(key.this):
            (expr,) = lengths([rows.bind(key.this)])
        return expr, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))

    def framed(self, frame: Frame, node: exp.Expr) -> Framed:
        if frame not in self.frames:
            from squallpy.logical.bind.subqueries import Subqueries

            aggregation = Aggregation(self.ctx, Subqueries(self.ctx), late=True)
            self.frames[frame] = Framed(aggregation, node, self.ctx.column("found", TRUE.type, True))
        return self.frames[frame]

    def aggregate(
        self,
        rows: Scalars,
        name: str,
        function: Called,
        where: exp.Expr | None,
        frame: Frame,
        order: tuple[Key, ...],
    ) -> Expr:
        """An aggregate of the rows of a frame, which may be none; `order` is as it was written."""
        if frame.rows in NUMBERED:
            self.rank(replace(frame, rows=NUMBERED[frame.rows], low=None, high=None), function)
        framed = self.framed(frame if frame.order or frame.alone else replace(frame, rows=ALL), function)
        fields = {name: getattr(rows, name) for name in Scalars.__dataclass_fields__}
        arguments = Arguments(**{**fields, "aggregation": framed.aggregation, "rows": rows})
        return self.seen(frame, framed, aggregate(arguments, name, function, where, order))

    def seen(self, frame: Frame, framed: Framed, value: Expr) -> Expr:
        """A value made of the aggregates of a frame, as it is where there may be none: a count of nothing is 0."""
        if frame.whole:
            return value
        names = dict[int, Expr]()
        counts = {column for agg, column in framed.aggregation.aggs.items() if agg.function == "count"}
        for column in framed.aggregation.made:
            shown = framed.shown.setdefault(column, self.ctx.column(column.name, column.type, True))
            zero = Literal(0, BIGINT)
            names[column.id] = case([(not_null(framed.found), shown)], zero) if column in counts else shown
        return substitute(value, names)

    def rank(self, frame: Frame, node: exp.Expr) -> Expr:
        """1 + the rows before."""
        framed = self.framed(frame, node)
        count = framed.aggregation.column("count", None)
        shown = framed.shown.setdefault(count, self.ctx.column("before", BIGINT, True))
        return call("+", case([(not_null(framed.found), shown)], Literal(0, BIGINT)), ONE)

    def share(self, name: str, function: exp.Anonymous, frame: Frame, node: exp.Expr) -> Expr:
        """Where a row stands among all, from 0 to 1, or in which of so many parts of equal size."""
        self.check_arity(name, function)
        every = self.framed(replace(frame, order=(), rows=ALL), node).aggregation.column("count", None)
        if name == "CUME_DIST":
            return call("/", self.framed(replace(frame, rows=UPTO), node).aggregation.column("count", None), every)
        if name == "PERCENT_RANK":
            part = call("/", call("-", self.rank(frame, node), ONE), call("-", every, ONE))
            return case([(call("=", every, ONE), Literal(0.0, DOUBLE))], part)
        parts = self.whole(function.expressions[0], name)
        before = call("-", self.rank(replace(frame, alone=True, asker=name), node), ONE)
        size, larger = call("div", every, parts), call("%", every, parts)  # the first ones have a row more
        in_larger = call("*", larger, call("+", size, ONE))
        first = call("div", before, call("+", size, ONE))
        rest = call("div", call("-", before, in_larger), call("greatest", size, ONE))
        return call("+", case([(call("<", before, in_larger), first)], call("+", larger, rest)), ONE)

    def whole(self, node: exp.Expr, name: str) -> Literal:
        """A constant of 1 or more."""
        number = constant_number(self.ctx, node)
        if number is None or number < 1:
            raise self.ctx.error("SQ2005", f"{name} needs a constant whole number above 0", node)
        return Literal(number, BIGINT)

    def last(self, frame: Frame, of: Expr, node: exp.Expr, ignoring: exp.Expr | None, last: bool = True) -> Expr:
        """The value of the last row of a frame, or of the first, or of those that have one: MAX_BY or MIN_BY, by the
        key or, of several, by the number of the row; of rows alike in the order the least."""
        (key, down, nulls_first), *more = frame.order
        if more:
            frame = frame.counted()
        if frame.rows in NUMBERED:
            number = self.rank(replace(frame, rows=NUMBERED[frame.rows], low=None, high=None), node)
            key, down = (number, False) if more else (key, down)
        framed = self.framed(frame, node)
        of, nothing = (coerce(of, BIGINT) if of.type == NULL else of), Literal(None, NULL)
        wanted = TRUE if ignoring is None or not of.nullable else not_null(of)
        by = key if wanted == TRUE else case([(wanted, key)], nothing)
        value: Expr = framed.aggregation.arg_extreme("max_by" if last != down else "min_by", of, by)
        if key.nullable and not more:  # rows without a key are all at one end
            mine = conjunction((call("is_null", key), wanted) if wanted != TRUE else (call("is_null", key),))
            least = framed.aggregation.column("min", case([(mine, of)], nothing))
            first = by if nulls_first == last else case([(mine, ONE)], nothing)
            found = call(">", framed.aggregation.column("count", first), Literal(0, BIGINT))
            value = case([(found, value)], least) if nulls_first == last else case([(found, least)], value)
        return self.seen(frame, framed, value)

    def alike(self, frame: Frame, of: Expr, node: exp.Expr) -> Expr:
        """The least value of the rows that are alike in the order, which are the last ones up to here."""
        alike = replace(frame, partition=frame.expressions, order=(), rows=ALL, alone=False)
        return self.framed(alike, node).aggregation.column("min", of)

    def neighbour(
        self,
        rows: Scalars,
        name: str,
        function: exp.Anonymous,
        frame: Frame,
        node: exp.Expr,
        ignoring: exp.Expr | None,
    ) -> Expr:
        self.check_arity(name, function)
        first, *more = function.expressions
        of, distance = rows.bind(first), 1
        if more:
            given = constant_number(self.ctx, more[0])
            if given is None:
                raise self.ctx.error("SQ2005", f"{name} needs a constant whole number of rows", more[0])
            distance = given
        otherwise: Expr = Literal(None, NULL)
        if len(more) > 1:
            _, otherwise = rows.as_moments([of, rows.bind(more[1])], [first, more[1]])
            if unify([of.type, otherwise.type]) is None:
                told = f"{name} of {of.type} and {otherwise.type}, which have no common type"
                raise self.ctx.error("SQ2005", told, more[1], "CAST one side")
        if ignoring is not None:
            if abs(distance) != 1:
                raise self.ctx.refuse(ignoring, QUERIES["ignored"])
            near = frame if NEIGHBOURS[name] == distance else frame.backwards()
            return coalesce(self.last(near, of, node, ignoring), otherwise)
        lookup = self.lookup(frame, NEIGHBOURS[name] * distance, of, node)
        nothing = isinstance(otherwise, Literal) and otherwise.value is None
        return lookup.value if nothing else case([(not_null(lookup.found), lookup.value)], otherwise)

    def end(
        self,
        rows: Scalars,
        name: str,
        function: exp.Anonymous,
        frame: Frame,
        spec: exp.WindowSpec | None,
        node: exp.Expr,
        ignoring: exp.Expr | None,
    ) -> Expr:
        """The value of the first or last row of a frame."""
        nth = name == "NTH_VALUE"
        self.check_arity(name, function)
        at = self.whole(function.expressions[1], name) if nth else ONE
        of, which = rows.bind(function.expressions[0]), extent(rows, spec, name, frame.order)
        is_last = which.rows == (UPTO if ENDS[name] else BEFORE)  # is it the row itself, or one like it?
        if not nth and (ignoring is not None or which.rows in (NEAR, GROUPS, WITHIN)):
            looked = replace(which, partition=frame.partition)
            if which.rows == BEFORE:  # from here to the end is up to here from the end
                looked = replace(looked, rows=UPTO).backwards()
            return self.last(looked, of, node, ignoring, last=ENDS[name] != (which.rows == BEFORE))
        if ignoring is not None:
            raise self.ctx.refuse(ignoring, QUERIES["ignored"])
        if is_last and not nth:
            return of if which.alone else self.alike(frame, of, node)
        if nth and which.rows == BEFORE and which.alone:
            return of if at.value == 1 else self.lookup(frame, 1 - at.value, of, node).value
        if which.rows not in (ALL, UPTO) and (nth or which.rows != BEFORE):  # from a row to the end is its last there
            raise self.ctx.refuse(spec or function, QUERIES["frame of ends"])
        if ENDS[name]:
            frame = frame.backwards()
        found = self.lookup(frame, at, of, node)
        if nth and which.rows == UPTO:
            upto = replace(frame, rows=UPTO, alone=False)
            seen = self.rank(frame, node) if which.alone else self.framed(upto, node).aggregation.column("count", None)
            return case([(call(">=", seen, at), found.value)], Literal(None, found.value.type))
        return found.value

    def lookup(self, frame: Frame, distance: int | Literal, of: Expr, node: exp.Expr) -> Lookup:
        if of.type == NULL:
            of = coerce(of, BIGINT)
        for known in self.lookups:
            if (known.frame, known.distance, known.of) == (frame, distance, of):
                return known
        value, found = self.ctx.column("value", of.type, True), self.ctx.column("found", TRUE.type, True)
        self.lookups.append(Lookup(frame, distance, of, value, found, node))
        return self.lookups[-1]

    def attach(self, plan: Node, grouped: Grouped, around: bool, read: frozenset[int] | None = None) -> Node:
        """The block's rows with all of them; of rows that have to be told apart, and are not, more is not `read`."""
        beneath = Beneath(self.ctx, plan, around)
        if read is not None and self.is_vague(beneath, grouped):
            beneath = beneath.numbered(read | self.reads(grouped))
            plan = beneath.plan
        nearest = [self.nearest(lookup, beneath, grouped) for lookup in self.lookups]
        for frame in self.frames:
            plan = self.beside(plan, beneath, frame, grouped)
        for lookup, pair in zip(self.lookups, nearest, strict=True):
            plan = self.looked_up(plan, beneath, lookup, pair, grouped)
        return plan

    def is_vague(self, beneath: Beneath, grouped: Grouped) -> bool:
        """Does one of them need an order in which no rows are alike, where none is known?"""
        asking = [(frame, framed.node) for frame, framed in self.frames.items() if frame.alone]
        lookups = [lookup for lookup in self.lookups if not self.adjacent(lookup, beneath, grouped)]
        asking += [(lookup.frame, lookup.node) for lookup in lookups if lookup.frame.alone]
        return any(beneath.apart(f.over(lambda expr, node=node: grouped(expr, node))) is None for f, node in asking)  # type: ignore[misc]

    def nearest(self, lookup: Lookup, beneath: Beneath, grouped: Grouped) -> tuple[Expr, Expr] | None:
        """The key of the order that the row has which is looked up, and what that is; None if rows have to be numbered.

        LAG(x) OVER (… ORDER BY k)   →   the greatest k before, k
        """
        if found := self.adjacent(lookup, beneath, grouped):
            frame, key, down = found
            framed = self.framed(frame, lookup.node)
            best = framed.aggregation.column("min" if down else "max", key)
            return framed.shown.setdefault(best, self.ctx.column("near", key.type, True)), key
        self.rank(lookup.frame, lookup.node)
        return None

    def adjacent(self, lookup: Lookup, beneath: Beneath, grouped: Grouped) -> tuple[Frame, Expr, bool] | None:
        """The frame before a row, with the one key of its order and whether that descends, if LAG or LEAD can find the
        adjacent row by that key; None if rows have to be numbered.

        A declared PRIMARY KEY is believed here: numbers would change for all rows behind one that comes.
        """
        if lookup.distance not in (1, -1):
            return None
        frame = replace(lookup.frame if lookup.distance == 1 else lookup.frame.backwards(), declared=True)
        found = beneath.apart(frame.over(lambda expr: grouped(expr, lookup.node)))
        if found is None or len(found.order) != 1:
            return None
        ((key, down, _),) = found.order
        return (frame, key, down) if not key.nullable and key.type.is_held_in_order else None

    def beside(self, plan: Node, beneath: Beneath, frame: Frame, grouped: Grouped) -> Node:
        """The rows of `plan` with the aggregates of a frame."""
        framed = self.frames[frame]

        def over(expr: Expr) -> Expr:
            return grouped(expr, framed.node)

        aggregation = framed.aggregation.in_terms_of(over)
        if frame.rows in NUMBERED:
            right, keys = self.near(beneath, frame, aggregation, grouped)
        else:
            with self.ctx.at(framed.node):
                right, keys = beneath.aggregated(self.settled(beneath, frame, framed.node, grouped), aggregation)
        on = [not_distinct(expr, key) for key, expr in keys]
        if frame.whole:
            return beneath.join(plan, right, on)
        shown = tuple((shown, column) for column, shown in framed.shown.items())
        items: Items = (*((key, key) for key, _ in keys), *shown, (framed.found, TRUE))
        return beneath.join(plan, Project(right, items), on, lost=True)

    def settled(self, beneath: Beneath, frame: Frame, node: exp.Expr, grouped: Grouped) -> Frame:
        return beneath.settled(frame.over(lambda expr: grouped(expr, node)))

    def near(self, beneath: Beneath, frame: Frame, aggregation: Aggregation, grouped: Grouped) -> tuple[Node, Items]:
        """The aggregates of the rows whose numbers are near each number, and what has them in common."""
        ranks = replace(frame, rows=NUMBERED[frame.rows], low=None, high=None)
        node, number = self.frames[frame].node, self.rank(ranks, self.frames[ranks].node)
        rows = self.beside(beneath.plan, beneath, ranks, grouped)
        partition = frame.over(lambda expr: grouped(expr, node)).partition
        place = self.ctx.column("number", BIGINT, False)
        mine: Items = (*self.ctx.copies(partition), (place, number))
        near = [not_distinct(expr, key) for key, expr in mine[:-1]]
        for bound, op in ((frame.low, ">="), (frame.high, "<=")):
            if bound is not None:
                near.append(call(op, number, call("+", place, Literal(bound[0] * bound[1].value, BIGINT))))
        pairs = beneath.join(Aggregate(rows, mine, ()), rows, near)
        keys = self.ctx.copies(key for key, _ in mine)
        return aggregation.over(pairs, keys), tuple((key, expr) for (key, _), (_, expr) in zip(keys, mine, strict=True))

    def looked_up(
        self, plan: Node, beneath: Beneath, lookup: Lookup, nearest: tuple[Expr, Expr] | None, grouped: Grouped
    ) -> Node:
        """The rows of `plan`, which are numbered or know which is the `nearest`, with the values of others."""
        of, number = grouped(lookup.of, lookup.node), self.rank(lookup.frame, lookup.node) if nearest is None else ONE
        rows = beneath.plan if nearest else self.beside(beneath.plan, beneath, lookup.frame, grouped)
        partition = lookup.frame.over(lambda expr: grouped(expr, lookup.node)).partition
        keys, value = self.ctx.copies(partition), self.ctx.like(of)
        on = [not_distinct(expr, key) for key, expr in keys]
        numbered: Items = ()
        if nearest is not None:
            near, key = nearest
            numbered = self.ctx.copies((key,))
            on.append(call("=", near, numbered[0][0]))
        elif isinstance(lookup.distance, Literal):
            rows = Filter(rows, call("=", number, lookup.distance))
        else:
            place = self.ctx.column("number", BIGINT, False)
            numbered = ((place, call("+", number, Literal(lookup.distance, BIGINT))),)
            on.append(call("=", number, place))
        right = Aggregate(rows, (*keys, *numbered, (value, of)), ())
        named: Items = tuple((key, key) for key, _ in (*keys, *numbered))
        items = (*named, (lookup.value, value), (lookup.found, TRUE))
        return beneath.join(plan, Project(right, items), on, lost=True)


def is_next(bound: Bound | None, side: int) -> bool:
    """Is it 1 PRECEDING, or 1 FOLLOWING?"""
    return bound is not None and bound[0] == side and bound[1].value == 1


def without_nulls(function: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """The call, and what says that it ignores NULLs: f(x) IGNORE NULLS, f(x IGNORE NULLS)."""
    marks = (exp.IgnoreNulls, exp.RespectNulls)
    found = function if isinstance(function, marks) else None
    inner = function.this if found is not None else function
    if isinstance(inner, exp.Anonymous) and inner.expressions and isinstance(inner.expressions[0], marks):
        found, inner, parent = inner.expressions[0], inner.copy(), inner.parent
        inner.expressions[0].replace(inner.expressions[0].this)
        inner.parent = parent
    if isinstance(inner, exp.Anonymous) and inner.name.upper() in ENDS and inner.name.upper() != "NTH_VALUE":
        match inner.expressions:
            case [_, exp.Boolean() as ignored]:  # as Spark has it: FIRST_VALUE(x, TRUE)
                found, inner, parent = exp.IgnoreNulls() if ignored.this else None, inner.copy(), inner.parent
                inner.set("expressions", inner.expressions[:1])
                inner.parent = parent
    return inner, found if isinstance(found, exp.IgnoreNulls) else None


def ungrouped(expr: Expr, node: exp.Expr) -> Expr:
    return expr


def over(s: Scalars, node: exp.Window) -> Expr:
    """function OVER (…)"""
    if s.overs is None:
        hint = {"WHERE": "use QUALIFY", "HAVING": "use QUALIFY"}.get(s.clause, "take it from a subquery in FROM")
        told = f"a window function cannot stand in {s.clause}"
        raise SquallError("SQ2009", told, s.ctx.query.keyword(node, "OVER"), hint)
    return s.overs.bind(s, node)
