"""Window functions: what stands before OVER, and what in its parentheses."""

from collections.abc import Callable
from dataclasses import field, replace

from sqlglot import exp

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, DOUBLE, INT, NULL, Type, unify
from squallpy.frontend.unsupported import AGGREGATES as UNSUPPORTED
from squallpy.frontend.unsupported import QUERIES
from squallpy.functions.aggregate.entries import Positional
from squallpy.functions.registry import AGGREGATES, WINDOWS
from squallpy.functions.window_functions import WindowKind
from squallpy.logical.aggregate_calls import Agg, OverClause, SortKey, SortKeys, WindowFunction
from squallpy.logical.bind.aggregates.calls import Called, aggregate, aggregate_name, check_ordered, split_order
from squallpy.logical.bind.aggregates.collector import Aggregation
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.order_by import constant_number
from squallpy.logical.bind.over.frame_bounds import bind_frame
from squallpy.logical.coercion import coerce
from squallpy.logical.expression_builders import case
from squallpy.logical.expressions import TRUE, Column, Expr, Literal, columns
from squallpy.logical.frame_conditions import conditions_in_range
from squallpy.logical.nested_order import in_order
from squallpy.logical.nodes import Node, WindowFunctions
from squallpy.logical.window_frame import FrameUnit

RELATIVE_RANKS = ("PERCENT_RANK", "CUME_DIST")
ALL_ALIKE: SortKeys = ((Literal(0, INT), False, True),)
"""The order where OVER has none: rows tie, and where they must be numbered, what decides ties does."""
Grouped = Callable[[Expr, exp.Expr], Expr]  # an expression over what GROUP BY makes, and its node for messages


@dataclass(frozen=True, slots=True)
class OverArguments(Scalars):
    """Binder of an aggregate before OVER, whose arguments are what `rows` binds."""

    rows: Scalars | None = None

    def inner(self) -> Scalars:
        assert self.rows is not None
        return self.rows


@dataclass(slots=True)
class OverAggregates(Aggregation):
    """Aggregates over one window; `add` makes each a window function."""

    add: Callable[[Agg, Column], Column] = field(kw_only=True)

    def add_aggregate(self, agg: Agg) -> Column:
        return self.add(agg, Aggregation.add_aggregate(self, agg))


@dataclass(slots=True)
class WindowCalls:
    """The window functions of a block; `named_windows` are its WINDOW clauses."""

    ctx: Context
    named_windows: dict[str, exp.Window]
    functions: dict[WindowFunction, tuple[Column, exp.Expr]] = field(default_factory=dict)
    used_names: set[str] = field(default_factory=set)  # of those named

    @property
    def columns(self) -> frozenset[Column]:
        """The columns of their values."""
        return frozenset(column for column, _ in self.functions.values())

    @property
    def reads(self) -> frozenset[int]:
        """The ids of the columns that they read."""
        return frozenset(c.id for function in self.functions for e in function.expressions for c in columns(e))

    def attach(self, plan: Node, grouped: Grouped) -> Node:
        """Add their columns to a plan; `grouped` gives an expression in terms of GROUP BY."""
        functions = []
        for function, (column, node) in self.functions.items():
            exprs = [grouped(expr, node) for expr in function.expressions]
            functions.append((column, replace(function.with_expressions(exprs), span=self.ctx.span(node))))
        return WindowFunctions(plan, tuple(functions)) if functions else plan

    def rename(self, value: Expr, name: str) -> Expr:
        """Give the column of a function the name that it has in the select list."""
        for function, (column, node) in self.functions.items():
            if column == value:
                self.functions[function] = replace(column, name=name), node
                return self.functions[function][0]
        return value

    def check(self, s: Scalars) -> None:
        """Bind the windows that nothing uses, for their mistakes."""
        for name in self.named_windows.keys() - self.used_names:
            window = exp.Window(alias=self.named_windows[name].this.copy(), over="OVER")
            window.parent = self.named_windows[name].parent
            self.bind_over(window, replace(s, clause="WINDOW", window_calls=None))

    def bind(self, s: Scalars, node: exp.Window) -> Expr:
        """Bind `function OVER (…)`."""
        function, where = node.this, None
        if isinstance(function, exp.Filter):
            function, where = function.this, function.expression.this
        function, ignoring = split_ignore_nulls(function)
        if not isinstance(function, exp.Anonymous | exp.WithinGroup):
            raise self.ctx.refuse(function)
        if isinstance(function, exp.WithinGroup):
            check_ordered(s, function)
        name = aggregate_name(function)
        entry = WINDOWS.get(name)
        if (name in AGGREGATES and isinstance(AGGREGATES[name].form, Positional)) or name in WINDOWS:
            for key in split_order(s, function.expressions)[1]:
                raise self.ctx.error("SQ2009", f"{name} takes its order from OVER", key, "write ORDER BY there")
        rows = replace(s, clause="OVER", window_calls=None, columns_first=True)
        rows = replace(rows, aliases=rows.names_where(lambda expr: not columns(expr) & self.columns))
        partition, order, spec = self.bind_over(node, rows)
        takes_ignore = name == "ANY_VALUE" or (entry and entry.kind in (WindowKind.NEIGHBOUR, WindowKind.VALUE))
        if ignoring is not None and not takes_ignore:
            raise self.ctx.refuse(ignoring)
        if name in AGGREGATES and (entry is None or not order):
            over = OverClause(partition, order, bind_frame(rows, spec, order))
            return self.aggregate(rows, name, function, where, over)
        assert isinstance(function, exp.Anonymous)
        if where is not None:
            raise SquallError("SQ2009", "FILTER goes with an aggregate", self.ctx.query.keyword(node, "FILTER"))
        if entry is None:
            if name in UNSUPPORTED:
                raise SquallError("SQ3001", f"{name} is not supported yet", self.head(function), UNSUPPORTED[name])
            known = (*AGGREGATES, *WINDOWS)
            message = f"{function.name} is no function that goes with OVER"
            raise SquallError("SQ2004", message, self.head(function), nearest(name, known))
        order = order or ALL_ALIKE
        frame = bind_frame(rows, spec, order)  # on which only functions of its ends depend
        self.check_arity(name, entry.arity, function)
        called = WindowFunction(
            entry.name, OverClause(partition, order), ignores_nulls=ignoring is not None, display_name=name
        )
        match entry.kind:
            case WindowKind.RANK | WindowKind.SHARE:
                args = tuple(self.positive(each, name) for each in function.expressions)
                return self.column(replace(called, args=args), node, DOUBLE if name in RELATIVE_RANKS else BIGINT)
            case WindowKind.NEIGHBOUR:
                return self.neighbour(rows, called, function, node, ignoring)
            case WindowKind.VALUE:
                called = replace(called, over=replace(called.over, frame=frame))
                return self.value(rows, called, function, spec, node, ignoring)

    def head(self, function: exp.Anonymous) -> Span:
        """Locate the name of a function."""
        return self.ctx.query.find_token(function)

    def check_arity(self, name: str, arity: tuple[int, int | None], function: exp.Anonymous) -> None:
        """Refuse a call with fewer or more arguments than its function takes, as SQ2005."""
        least, most = arity
        assert most is not None
        count = len(function.expressions)
        if not least <= count <= most:
            expected = " to ".join(map(str, sorted({least, most})))
            plural = "" if expected == "1" else "s"
            message = f"{name} takes {expected} argument{plural}, not {count}"
            raise SquallError("SQ2005", message, self.head(function))

    def bind_over(
        self, node: exp.Window, rows: Scalars, seen: tuple[str, ...] = ()
    ) -> tuple[tuple[Expr, ...], SortKeys, exp.WindowSpec | None]:
        """Bind PARTITION BY and ORDER BY, those of a WINDOW clause among them, and find the frame."""
        partition: tuple[Expr, ...] = ()
        order: SortKeys = ()
        spec = node.args.get("spec")
        given = node.args.get("alias")
        if given is not None:
            name = given.name.lower()
            if name in seen:
                raise self.ctx.error("SQ2007", f'window "{given.name}" is made of itself', given)
            if name not in self.named_windows:
                raise self.ctx.error(
                    "SQ2001", f'unknown window "{given.name}"', given, nearest(name, self.named_windows)
                )
            self.used_names.add(name)
            base = self.named_windows[name]
            self.ctx.refuse_other_args(base, "this", "partition_by", "order", "spec", "alias", "over")
            partition, order, above = self.bind_over(base, rows, (*seen, name))
            spec = spec or above
        if node.args.get("partition_by"):
            partition = tuple(rows.bind(expr) for expr in node.args["partition_by"])
        clause = node.args.get("order")
        if clause is not None:
            self.ctx.refuse_other_args(clause, "expressions")
            order = tuple(self.key(key, rows) for key in clause.expressions)
        return partition, order, spec

    def key(self, key: exp.Ordered, rows: Scalars) -> SortKey:
        """Bind a key of ORDER BY."""
        self.ctx.refuse_other_args(key, "this", "desc", "nulls_first")
        with self.ctx.at(key.this):
            (expr,) = in_order([rows.bind_value(key.this)])
        return expr, bool(key.args.get("desc")), bool(key.args.get("nulls_first"))

    def column(self, function: WindowFunction, node: exp.Expr, type: Type, nullable: bool = True) -> Column:
        """Return the column of a function; equal ones share one."""
        self.check_distance(function, node)
        if function not in self.functions:
            name = function.function.function if isinstance(function.function, Agg) else function.function
            self.functions[function] = self.ctx.column(name.lower(), type, nullable), node
        return self.functions[function][0]

    def check_distance(self, function: WindowFunction, node: exp.Expr) -> None:
        """Refuse a RANGE whose distances do not go with the key of its ORDER BY."""
        frame, order = function.over.frame, function.over.order
        if frame.unit is FrameUnit.RANGE and not frame.is_open:
            with self.ctx.at(node):
                list(conditions_in_range(order[0][0], order[0][0], order[0], frame.start, frame.end))

    def aggregate(self, rows: Scalars, name: str, function: Called, where: exp.Expr | None, over: OverClause) -> Expr:
        """Bind an aggregate of the rows of a frame."""

        def add(agg: Agg, column: Column) -> Column:
            called = WindowFunction(agg, over, display_name=name)
            return self.column(called, function, column.type, column.nullable)

        from squallpy.logical.bind.subqueries import Subqueries

        fields = {name: getattr(rows, name) for name in Scalars.__dataclass_fields__}
        aggregation = OverAggregates(self.ctx, Subqueries(self.ctx), is_late=True, add=add)
        arguments = OverArguments(**{**fields, "aggregation": aggregation, "rows": rows})
        return aggregate(arguments, name, function, where, over.order)

    def positive(self, node: exp.Expr, name: str) -> Literal:
        """Bind a constant of 1 or more."""
        number = constant_number(self.ctx, node)
        if number is None or number < 1:
            raise self.ctx.error("SQ2005", f"{name} needs a constant whole number above 0", node)
        return Literal(number, BIGINT)

    def neighbour(
        self, rows: Scalars, called: WindowFunction, function: exp.Anonymous, node: exp.Expr, ignoring: exp.Expr | None
    ) -> Expr:
        """Bind LAG or LEAD."""
        name = called.display_name
        first, *more = function.expressions
        of, args = rows.bind(first), list[Expr]()
        if more:
            distance = constant_number(self.ctx, more[0])
            if distance is None:
                raise self.ctx.error("SQ2005", f"{name} needs a constant whole number of rows", more[0])
            if ignoring is not None and abs(distance) != 1:
                raise self.ctx.refuse(ignoring, QUERIES["ignored"])
            args.append(Literal(distance, BIGINT))
        if len(more) > 1:
            _, default = rows.as_one_type([of, rows.bind(more[1])], [first, more[1]])
            if unify([of.type, default.type]) is None:
                message = f"{name} of {of.type} and {default.type}, which have no common type"
                raise self.ctx.error("SQ2005", message, more[1], "CAST one side")
            args.append(default)
        of = coerce(of, BIGINT) if of.type == NULL else of
        type = case([(TRUE, of)], args[1]).type if len(args) > 1 and args[1].type != NULL else of.type
        return self.column(replace(called, args=(of, *args)), node, type)

    def value(
        self,
        rows: Scalars,
        called: WindowFunction,
        function: exp.Anonymous,
        spec: exp.WindowSpec | None,
        node: exp.Expr,
        ignoring: exp.Expr | None,
    ) -> Expr:
        """Bind FIRST_VALUE, LAST_VALUE or NTH_VALUE."""
        position = tuple(self.positive(each, called.display_name) for each in function.expressions[1:])
        of = rows.bind(function.expressions[0])
        frame = called.over.frame
        if position and ignoring is not None:
            raise self.ctx.refuse(ignoring, QUERIES["ignored"])
        is_from_here = frame.start is not None and frame.unit is not FrameUnit.ROWS
        if position and (not frame.is_open or is_from_here):
            raise self.ctx.refuse(spec or function, QUERIES["frame of ends"])
        of = coerce(of, BIGINT) if of.type == NULL else of
        return self.column(replace(called, args=(of, *position)), node, of.type)


def split_ignore_nulls(function: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """Split a call from the mark that it ignores NULLs: f(x) IGNORE NULLS, f(x IGNORE NULLS), FIRST_VALUE(x, TRUE)."""
    marks = (exp.IgnoreNulls, exp.RespectNulls)
    found = function if isinstance(function, marks) else None
    inner = function.this if found is not None else function
    if isinstance(inner, exp.Anonymous) and inner.expressions and isinstance(inner.expressions[0], marks):
        found, inner, parent = inner.expressions[0], inner.copy(), inner.parent
        inner.expressions[0].replace(inner.expressions[0].this)
        inner.parent = parent
    if isinstance(inner, exp.Anonymous) and inner.name.upper() in WINDOWS.keys() & AGGREGATES.keys():
        match inner.expressions:
            case [_, exp.Boolean() as ignored]:  # as Spark has it
                found, inner, parent = exp.IgnoreNulls() if ignored.this else None, inner.copy(), inner.parent
                inner.set("expressions", inner.expressions[:1])
                inner.parent = parent
    return inner, found if isinstance(found, exp.IgnoreNulls) else None


def bind_over_clause(s: Scalars, node: exp.Window) -> Expr:
    """Bind function OVER (…)."""
    if s.window_calls is None:
        hint = {"WHERE": "use QUALIFY", "HAVING": "use QUALIFY"}.get(s.clause, "take it from a subquery in FROM")
        message = f"a window function cannot stand in {s.clause}"
        raise SquallError("SQ2009", message, s.ctx.query.keyword(node, "OVER"), hint)
    known, value = len(s.window_calls.functions), s.window_calls.bind(s, node)
    if isinstance(node.parent, exp.Alias) and len(s.window_calls.functions) > known:
        return s.window_calls.rename(value, node.parent.alias)
    return value
