"""A plan as text: one operator a line, inputs indented.

Project o_orderkey, revenue := SUM(l_extendedprice)
  Aggregate by o_orderkey: SUM(l_extendedprice)
    Scan orders
"""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.base.free_names import FreeNames
from squallpy.catalog.durations import format_duration
from squallpy.catalog.relation import WORKING
from squallpy.catalog.window_spec import NowExtent, WindowSpec
from squallpy.logical.aggregate_calls import Agg, SortKeys, WindowFunction
from squallpy.logical.apply import Apply, Domain
from squallpy.logical.expressions import TRUE, Column, Expr, substitute
from squallpy.logical.factorised import Factorised
from squallpy.logical.first_rows import FirstRows
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    Filter,
    GroupingSets,
    Join,
    LeftJoin,
    Limit,
    Node,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    SetOperation,
    Sort,
    TopN,
    Union,
    Window,
    WindowFunctions,
    nodes,
)
from squallpy.logical.recursion import Recursion
from squallpy.logical.session_windows import SessionBounds, SessionWindow
from squallpy.logical.window_frame import DEFAULT_FRAME


def show(plan: Node, *, types: bool = False) -> str:
    """Show the plan as an indented tree; with `types`, each line ends with the types of its columns.

    Columns whose names an operator would not tell apart have that of their stream in front, or a number behind; those
    that a subquery reads from around it are outer(…).
    """
    return "\n".join(_lines(plan, _Names(plan), types, 0))


def _lines(node: Node, names: "_Names", types: bool, depth: int) -> Iterator[str]:
    while isinstance(node, Join) and isinstance(node.left, Domain) and node.on is None:
        node = node.right  # FROM of a subquery, whose outer columns are marked as such
    line = "  " * depth + _describe(node, names)
    if types:
        columns = (f"{names(c)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in node.output)
        line += "  -- " + ", ".join(columns)
    yield line
    for child in node.inputs:
        yield from _lines(child, names, types, depth + 1)


class _Names:
    """Names of the columns of a plan: their own, unless two that an operator reads have the same."""

    def __init__(self, plan: Node) -> None:
        outer = {c.id for node in nodes(plan) if isinstance(node, Domain) for c in node.output}
        found: dict[int, Column] = {}
        alike: dict[int, None] = {}  # ids, in the order in which the plan makes the columns
        aliases: dict[int, str] = {}
        applies: list[Apply] = []
        for node in nodes(plan):
            match node:
                case Scan(_, alias, columns):
                    aliases |= {c.id: alias for c in columns}
                case Apply():
                    applies.append(node)
            by_name: dict[str, set[int]] = {}
            for column in (c for child in node.inputs for c in child.output if c.id not in outer):
                found.setdefault(column.id, column)
                by_name.setdefault(column.name.lower(), set()).add(column.id)
            alike |= dict.fromkeys(sorted(id for ids in by_name.values() if len(ids) > 1 for id in ids))
        free = FreeNames(column.name for column in found.values())
        self._columns: dict[int, Expr] = {}
        for id in alike:
            column = found[id]
            qualified = (f"{aliases[id]}.{column.name}",) if id in aliases else ()
            self._columns[id] = replace(column, name=free.take(*qualified, column.name))
        for apply in reversed(applies):  # outermost first
            self._columns |= {c.id: replace(c, name=f"outer({self(expr)})") for c, expr in apply.parameters}

    def __call__(self, expr: Expr) -> str:
        return str(substitute(expr, self._columns))

    def agg(self, agg: Agg) -> str:
        """Show an aggregate."""
        return str(agg.with_args(substitute(arg, self._columns) for arg in agg.args))

    def function(self, function: WindowFunction) -> str:
        """Show a window function."""
        function = function.with_expressions(substitute(e, self._columns) for e in function.expressions)
        over, agg = function.over, function.function
        call = str(agg) if isinstance(agg, Agg) else f"{agg}({', '.join(map(str, function.args))})"
        call += " IGNORE NULLS" if function.ignores_nulls else ""
        keys = ", ".join(order(str(key), down, nulls) for key, down, nulls in over.order)
        parts = (
            f"PARTITION BY {', '.join(map(str, over.partition))}" if over.partition else "",
            f"ORDER BY {keys}" if keys else "",
            str(over.frame) if over.frame != DEFAULT_FRAME else "",
        )
        return f"{call} OVER ({' '.join(part for part in parts if part)})"

    def show_computed(self, column: Column, expr: Expr) -> str:
        """Show a column that an operator computes by an expression."""
        name, text = self(column), self(expr)
        return name if name == text else f"{name} := {text}"


def _describe(node: Node, names: _Names) -> str:
    """Show one operator without its inputs."""
    match node:
        case Scan(relation, alias) if relation.parts:
            return f"Scan {relation.name} := {relation.parts} AS {alias}"
        case Scan(relation, alias) if relation.format == WORKING:
            return f"Recursive {relation.name}" + (f" AS {alias}" if alias.lower() != relation.name.lower() else "")
        case Recursion(_, tables, columns):
            grown = (f"{table.relation.name} by {table.growth.value}" for table in tables)
            return f"Recursion {', '.join(grown)}: {', '.join(map(names, columns))}"
        case Scan(relation, alias):
            return f"Scan {relation.name}" + (f" AS {alias}" if alias.lower() != relation.name.lower() else "")
        case Window(_, WindowSpec(frame=NowExtent() as frame), time) if time is not None:
            return f"Window {' AND '.join(frame.conditions(names(time)))}"
        case Window(_, spec, time):
            clocks = sorted({clock.relation for clock in spec.clocks})
            by = f" by the clocks of {', '.join(clocks)}" if len(clocks) > 1 else ""
            return f"Window {spec.frame}" + (f" of {names(time)}" if time is not None else "") + by
        case Filter(_, predicate):
            return f"Filter {names(predicate)}"
        case Project(_, items):
            return "Project " + ", ".join(names.show_computed(column, expr) for column, expr in items)
        case Join(_, _, on):
            return f"Join on {names(on)}" if on is not None else "Cross"
        case LeftJoin(_, _, on):
            return f"Left join on {names(on)}"
        case SemiJoin(_, _, on):
            return f"Semi join on {names(on)}"
        case AntiJoin(_, _, on):
            return f"Anti join on {names(on)}"
        case Apply(_, _, kind, _, on, made):
            adds = " " + ", ".join(map(names, made)) if made else ""
            return f"Apply {kind.value}{adds}" + (f" on {names(on)}" if on != TRUE else "")
        case Domain():
            return "Outer row"
        case Union(_, columns):
            return "Union all " + ", ".join(map(names, columns))
        case SetOperation(kind, is_all, _, columns):
            return f"{kind.capitalize()}{' all' if is_all else ''} " + ", ".join(map(names, columns))
        case GroupingSets(_, keys, sets, aggs, groupings):
            named = {key: names.show_computed(key, expr) for key, expr in keys}
            by = ", ".join(f"({', '.join(named[key] for key in each)})" for each in sets)
            shown = (*(names.agg(agg) for _, agg in aggs), *(names(column) for column, _ in groupings))
            return f"Aggregate by sets {by}" + (f": {', '.join(shown)}" if shown else "")
        case Aggregate(_, keys, aggs):
            by = " by " + ", ".join(names.show_computed(column, expr) for column, expr in keys) if keys else ""
            return f"Aggregate{by}" + (": " + ", ".join(names.agg(agg) for _, agg in aggs) if aggs else "")
        case WindowFunctions(_, functions):
            return "WindowFunctions " + ", ".join(f"{names(column)} := {names.function(f)}" for column, f in functions)
        case SessionWindow(_, partition, time, gap, start):
            by = " by " + ", ".join(map(names, partition)) if partition else ""
            return f"SessionWindow {names(start)}{by} of {names(time)}, {format_duration(gap)}"
        case FirstRows(_, _, order, most):
            by = " by " + ", ".join(map(names, node.group)) if node.group else ""
            return f"FirstRows {most}{by} in order of " + ", ".join(names(c) + " DESC" * down for c, down, _ in order)
        case SessionBounds(_, gap):
            by = " by " + ", ".join(map(names, node.partition)) if node.partition else ""
            return f"Sessions{by} of {names(node.time)}, {format_duration(gap)}"
        case Factorised(_, model, features, keys):
            by = " by " + ", ".join(map(names, keys)) if keys else ""
            return f"{model}{by}: {', '.join(map(names, features))}"
        case Repeat(_, times, number):
            return f"Repeat {names(times)} times" + ("" if number is None else f", {names(number)} from 0")
        case Sort(_, keys):
            return f"Sort {_keys(keys, names)}"
        case TopN():
            each = ", ".join(map(names, node.partition))
            return (
                f"Top {_numbers(node)}{' with ties' if node.with_ties else ''}"
                + (f" by {_keys(node.keys, names)}" if node.keys else "")
                + (f" for each {each}" if each else "")
            )
        case Limit():
            return f"Limit {_numbers(node)}"
    raise AssertionError(node)


def _keys(keys: SortKeys, names: _Names) -> str:
    return ", ".join(order(names(expr), down, nulls) for expr, down, nulls in keys)


def _numbers(node: TopN | Limit) -> str:
    """Show LIMIT and OFFSET."""
    return f"{'all' if node.count is None else node.count}" + (f" offset {node.offset}" if node.offset else "")


def order(text: str, descending: bool, nulls_first: bool) -> str:
    """Show a sort key without Spark's defaults: NULLs first when ascending, last when descending."""
    nulls = "" if nulls_first != descending else f" NULLS {'FIRST' if nulls_first else 'LAST'}"
    return f"{text}{' DESC' if descending else ''}{nulls}"
