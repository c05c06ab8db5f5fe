"""A plan as text: one operator a line, inputs indented.

Project o_orderkey, revenue := SUM(l_extendedprice)
  Aggregate by o_orderkey: SUM(l_extendedprice)
    Scan orders
"""

from squallpy.logical.expressions import Column, Expr
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    Filter,
    Join,
    LeftJoin,
    Limit,
    Node,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    Sort,
    Union,
    Window,
)


def show(plan: Node, *, types: bool = False, depth: int = 0) -> str:
    """The plan as an indented tree; with `types`, each line ends with the types of its columns."""
    line = "  " * depth + describe(plan)
    if types:
        line += "  -- " + ", ".join(f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in plan.output)
    return "\n".join([line, *(show(child, types=types, depth=depth + 1) for child in plan.inputs)])


def describe(node: Node) -> str:
    """One operator without its inputs."""
    match node:
        case Scan(relation, alias) if relation.parts:
            return f"Scan {relation.name} := {relation.parts} AS {alias}"
        case Scan(relation, alias):
            return f"Scan {relation.name}" + (f" AS {alias}" if alias.lower() != relation.name.lower() else "")
        case Window(_, spec, time):
            return f"Window {spec.frame}" + (f" of {time}" if time is not None else "")
        case Filter(_, predicate):
            return f"Filter {predicate}"
        case Project(_, items):
            return "Project " + ", ".join(named(column, expr) for column, expr in items)
        case Join(_, _, on):
            return f"Join on {on}" if on is not None else "Cross"
        case LeftJoin(_, _, on):
            return f"Left join on {on}"
        case SemiJoin(_, _, on):
            return f"Semi join on {on}"
        case AntiJoin(_, _, on):
            return f"Anti join on {on}"
        case Union(_, columns):
            return "Union all " + ", ".join(column.name for column in columns)
        case Aggregate(_, keys, aggs):
            by = " by " + ", ".join(named(column, expr) for column, expr in keys) if keys else ""
            return f"Aggregate{by}" + (": " + ", ".join(str(agg) for _, agg in aggs) if aggs else "")
        case Repeat(_, times, number):
            return f"Repeat {times} times" + ("" if number is None else f", {number} from 0")
        case Sort(_, keys):
            return "Sort " + ", ".join(order(*key) for key in keys)
        case Limit(_, count, offset):
            return f"Limit {'all' if count is None else count}" + (f" offset {offset}" if offset else "")
    raise AssertionError(node)


def named(column: Column, expr: Expr) -> str:
    return column.name if column.name == str(expr) else f"{column.name} := {expr}"


def order(expr: Expr, descending: bool, nulls_first: bool) -> str:
    """Spark's defaults unsaid: NULLs first when ascending, last when descending."""
    nulls = "" if nulls_first != descending else f" NULLS {'FIRST' if nulls_first else 'LAST'}"
    return f"{expr}{' DESC' if descending else ''}{nulls}"
