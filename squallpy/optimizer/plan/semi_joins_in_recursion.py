"""EXISTS and IN over recursive tables as SEMI joins, which a fixpoint follows, with the optimizer off as well."""

from dataclasses import replace

from squallpy.logical.apply import Apply, ApplyKind
from squallpy.logical.nodes import Node, nodes
from squallpy.logical.recursion import Recursion
from squallpy.optimizer.pass_manager import bottom_up
from squallpy.optimizer.plan.exists_to_semi import exists_to_semi


def semi_joins_in_recursion(plan: Node) -> Node:
    """Turn each EXISTS that a filter requires in a recursive query into a SEMI, and drop those that are not read.

    reach ← σ_{found IS NOT NULL}(Apply EXISTS found (edge, reach))   →   reach ← Apply SEMI (edge, reach)
    """

    def change(node: Node, after: Node) -> Node:
        if not isinstance(after, Recursion):
            return after
        return replace(after, children=tuple(map(_without_marks, after.children)))

    return bottom_up(change)(plan)


def _without_marks(plan: Node) -> Node:
    """Repeat as long as there are fewer: a mark may be read by another one that is dropped."""
    left = _count_marks(plan)
    while left and _count_marks(plan := exists_to_semi(plan)) < left:
        left = _count_marks(plan)
    return plan


def _count_marks(plan: Node) -> int:
    return sum(isinstance(node, Apply) and node.kind is ApplyKind.EXISTS for node in nodes(plan))
