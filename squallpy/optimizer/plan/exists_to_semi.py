"""Filters on EXISTS and IN, before subqueries become joins.

    σ_{found IS NOT NULL ∧ p(r)}(Apply EXISTS found (r, S))   →   Apply SEMI (σ_p(r), S)

A mark that nothing reads needs no subquery, such as the ones for the NULLs of an IN where NULL has the effect of FALSE.
"""

from dataclasses import replace

from squallpy.logical.apply import Apply, ApplyKind
from squallpy.logical.expressions import TRUE, Call, Column, Expr, columns, conjunction, conjuncts, not_null
from squallpy.logical.nodes import Filter, Node, nodes
from squallpy.logical.null_folding import fold_condition
from squallpy.optimizer.pass_manager import expressions, top_down
from squallpy.optimizer.plan.push_filters import split_by_reader


def exists_to_semi(plan: Node) -> Node:
    """Turn each EXISTS that a filter requires into a SEMI, and drop those that are not read."""
    required, read = _required_and_read(plan)
    used = required | read

    def rule(node: Node) -> Node:
        while isinstance(node, Apply) and node.kind is ApplyKind.EXISTS and node.outputs[0].id not in used:
            node = node.left
        return _filter_applies(node, read) if isinstance(node, Filter) else node

    return top_down(plan, rule)


def _required_and_read(plan: Node) -> tuple[set[int], set[int]]:
    """List the columns that a filter requires not to be NULL, and those that are read for more than that."""
    required, read = set[int](), set[int]()
    for node in nodes(plan):
        every = expressions(node)
        if isinstance(node, Filter):
            predicates = conjuncts(fold_condition(node.predicate))
            required |= {id for each in predicates for id in _mark(each)}
            every = tuple(each for each in predicates if not _mark(each))
        read |= {c.id for expr in every for c in columns(expr)}
    return required, read


def _mark(conjunct: Expr) -> tuple[int, ...]:
    """Match `found IS NOT NULL`."""
    match conjunct:
        case Call("not", (Call("is_null", (Column(id),)),)):
            return (id,)
    return ()


def _filter_applies(node: Filter, read: set[int]) -> Node:
    """Push the conjuncts of a filter below the subqueries that they do not read."""
    chain: list[Apply] = []
    plan = node.child
    while isinstance(plan, Apply) and plan.outputs:
        chain.append(plan)
        plan = plan.left
    if not chain:
        return node
    rest = conjunction(conjuncts(fold_condition(node.predicate)))
    for apply in reversed(chain):
        mine, others = split_by_reader(rest, plan)
        plan = Filter(plan, conjunction(mine)) if mine else plan
        found = not_null(apply.outputs[0])
        if apply.kind is ApplyKind.EXISTS and apply.outputs[0].id not in read and found in others:
            others = tuple(each for each in others if each != found)
            apply = replace(apply, kind=ApplyKind.SEMI, outputs=())
        plan, rest = replace(apply, left=plan), conjunction(others)
    return Filter(plan, rest) if rest != TRUE else plan
