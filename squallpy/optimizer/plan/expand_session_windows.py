"""Session windows as joins with the sessions of their times.

    SELECT k, COUNT(*), MAX(at) FROM r GROUP BY k, SESSION_WINDOW(at, …)

    R(k, at) ⋈ N1(k, start, following) ⋈ (start <= at) ⋈ (at < following)    by k, start
    MAX(at) of a session   :=   N1(k, start, last)

The range of a session ends where the following one starts, so a row behind its last one does not change it. Where it
does, sums over it are those of a sorted index: two sessions become one in a logarithm, however long they are.
"""

from dataclasses import replace

from squallpy.base.types import TIMESTAMP
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expression_builders import call, not_distinct
from squallpy.logical.expressions import Column, Expr, conjunction
from squallpy.logical.nodes import Aggregate, Node, Project, inner_join, nodes
from squallpy.logical.session_windows import SessionBounds, SessionWindow
from squallpy.optimizer.pass_manager import PassContext, bottom_up


def expand_session_windows(plan: Node, context: PassContext) -> Node:
    """Replace each SessionWindow by a join of its input with the sessions of its times."""
    if not any(isinstance(node, SessionWindow) for node in nodes(plan)):
        return plan
    windows: dict[int, SessionWindow] = {}

    def change(_: Node, after: Node) -> Node:
        match after:
            case SessionWindow():
                rows = _join_sessions(after, context)
                windows[id(rows)] = after
                return rows
            case Aggregate(child) if id(child) in windows:
                return _read_last_times(after, windows[id(child)], context)
        return after

    return bottom_up(change)(plan)


def _bounds(window: SessionWindow, context: PassContext) -> SessionBounds:
    """Build the sessions of a window's times."""
    keys = (*context.copies(window.partition), (context.column("at", TIMESTAMP, False), window.time))
    times = Aggregate(window.child, keys, ())
    start, following, last = (context.column(name, TIMESTAMP, False) for name in ("start", "following", "last"))
    return SessionBounds(times, window.gap, start, following, last)


def _join_sessions(window: SessionWindow, context: PassContext) -> Node:
    """Join rows with the session that they are in."""
    bounds, time = _bounds(window, context), window.time
    same = (not_distinct(a, b) for a, b in zip(window.partition, bounds.partition, strict=True))
    inside = (call("<=", bounds.start, time), call("<", time, bounds.following))
    joined = inner_join(window.child, bounds, conjunction((*same, *inside)))
    found = ((window.start, bounds.start), (window.last, bounds.last))
    return Project(joined, (*((c, c) for c in window.child.output), *found))


def _read_last_times(node: Aggregate, window: SessionWindow, context: PassContext) -> Node:
    """Read the greatest time of each session off the sessions, where it is aggregated by no other key than theirs."""
    keys: dict[Expr, Column] = {expr: column for column, expr in node.keys}
    last = [column for column, agg in node.aggs if agg == Agg("max", window.time)]
    if not last or keys.keys() != {*window.partition, window.start}:
        return node
    others = replace(node, aggs=tuple((column, agg) for column, agg in node.aggs if column not in last))
    bounds = _bounds(window, context)
    same = [not_distinct(keys[a], b) for a, b in zip(window.partition, bounds.partition, strict=True)]
    joined = inner_join(others, bounds, conjunction((*same, call("=", keys[window.start], bounds.start))))
    read = dict.fromkeys(last, bounds.last)
    return Project(joined, tuple((c, read.get(c, c)) for c in node.output))
