"""The optimizer as a value that can be printed: stages in order, each run until nothing changes."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from squallpy.logical.constant_folding import Evaluate, fold_constant
from squallpy.logical.expressions import Expr, transform
from squallpy.logical.nodes import (
    Aggregate,
    ConditionalJoin,
    Filter,
    Join,
    Node,
    Project,
    Query,
    Repeat,
    Sort,
    with_inputs,
)
from squallpy.logical.nulls import fold_case
from squallpy.optimizer.plan import booleans, outer_joins, push_filters

NodeRule = Callable[[Node], Node | None]
ExprRule = Callable[[Expr], Expr | None]
Rewritten = dict[int, tuple[Node, Node]]  # by its id: an operator, and what a rule makes of it


@dataclass(frozen=True, slots=True)
class Stage:
    """Rules that are applied together, bottom-up, to a fixed point. `why` says why the stage stands where it stands."""

    name: str
    why: str
    nodes: tuple[NodeRule, ...] = ()
    exprs: tuple[ExprRule, ...] = ()


def stages(evaluate: Evaluate) -> tuple[Stage, ...]:
    """The whole optimizer; `evaluate` computes a constant as the runtime would."""
    return (
        Stage(
            "normalise expressions",
            "first, so that conjuncts hidden in constants, OR and NOT are seen by what follows",
            nodes=(push_filters.decide_predicate,),
            exprs=(
                fold_constant(evaluate),
                fold_case,
                booleans.fold_constant_in_and,
                booleans.fold_constant_in_or,
                booleans.fold_not,
                booleans.decide_arms,
                booleans.open_abs,
                booleans.factor_conjunct_out_of_or,
            ),
        ),
        Stage(
            "restrict inputs",
            "before filters move: afterwards an OR over two inputs is a join condition",
            nodes=(
                push_filters.merge_filters,
                push_filters.push_filter_below_project,
                push_filters.restrict_inputs_of_or,
            ),
        ),
        Stage(
            "push filters",
            "last, when all conjuncts are known: smaller deltas and smaller views; constants of a UNION meet there",
            nodes=(
                push_filters.drop_true_predicate,
                push_filters.merge_filters,
                push_filters.push_filter_below_project,
                push_filters.push_filter_below_window,
                push_filters.push_filter_below_union,
                push_filters.push_filter_below_aggregate,
                outer_joins.strengthen_left_join,
                outer_joins.push_filter_left,
                outer_joins.push_on_right,
                push_filters.push_filter_below_join,
                push_filters.drop_input_of_union,
            ),
            exprs=(fold_constant(evaluate), booleans.fold_constant_in_and, booleans.fold_constant_in_or),
        ),
    )


def optimise(query: Query, stages: tuple[Stage, ...]) -> Query:
    """The query with all stages applied; its output columns stay what they were."""
    plan = query.plan
    for _, changed in trace(query.plan, stages):
        plan = changed
    return query if plan is query.plan else replace(query, plan=plan)


def trace(plan: Node, stages: tuple[Stage, ...]) -> Iterator[tuple[str, Node]]:
    """Each rule that changed something, with the plan after it (EXPLAIN TRACE)."""
    for stage in stages:
        known = defaultdict[object, Rewritten](dict)  # by rule
        changed = True
        while changed:
            changed = False
            for rule in stage.nodes:
                after = rewrite(plan, rule, known[rule])
                if after is not plan:
                    _same_output(plan, after, rule.__name__)
                    plan, changed = after, True
                    yield rule.__name__, plan
            for expr_rule in stage.exprs:
                after = rewrite_exprs(plan, expr_rule, known[expr_rule])
                if after is not plan:
                    _same_output(plan, after, expr_rule.__name__)
                    plan, changed = after, True
                    yield expr_rule.__name__, plan


def _same_output(before: Node, after: Node, rule: str) -> None:
    for a, b in zip(before.output, after.output, strict=True):
        assert a == b, f"rule {rule} changed {a.name}: {a.type} → {b.name}: {b.type}"


def rewrite(node: Node, rule: NodeRule, known: Rewritten) -> Node:
    """One pass of a rule, bottom-up; an unchanged tree keeps its identity. `known`: of earlier passes."""

    def whole(node: Node) -> Node:
        return rule(node) or node

    return _rewritten(node, whole, known)


def rewrite_exprs(node: Node, rule: ExprRule, known: Rewritten) -> Node:
    """One pass of an expression rule over all expressions of a plan."""

    def whole(node: Node) -> Node:
        old = expressions(node)
        new = tuple(transform(expr, rule) for expr in old)
        return node if all(a is b for a, b in zip(old, new, strict=True)) else with_expressions(node, new)

    return _rewritten(node, whole, known)


def _rewritten(node: Node, change: Callable[[Node], Node], known: Rewritten) -> Node:
    """Each operator changed until it stays as it is, behind its inputs, however many read it, and however often a rule
    comes by. So what is pushed down a chain of operators is at its end after one pass."""
    if id(node) not in known:
        inputs = tuple(_rewritten(child, change, known) for child in node.inputs)
        before = with_inputs(node, inputs)
        after = change(before)
        if after is before:
            known[id(before)] = before, before
        known[id(node)] = node, before if after is before else _rewritten(after, change, known)
    return known[id(node)][1]


def expressions(node: Node) -> tuple[Expr, ...]:
    """What an operator computes, its inputs aside."""
    match node:
        case Filter(_, predicate):
            return (predicate,)
        case Join(_, _, on) if on is not None:
            return (on,)
        case ConditionalJoin(_, _, on):
            return (on,)
        case Project(_, items):
            return tuple(expr for _, expr in items)
        case Aggregate(_, keys, aggs):
            return (*(expr for _, expr in keys), *(arg for _, agg in aggs for arg in agg.args))
        case Sort(_, keys):
            return tuple(expr for expr, _, _ in keys)
        case Repeat(_, times):
            return (times,)
    return ()


def with_expressions(node: Node, new: tuple[Expr, ...]) -> Node:
    """The node with other expressions, in the order of `expressions`."""
    rest = iter(new)
    match node:
        case Filter():
            return replace(node, predicate=next(rest))
        case Join() | ConditionalJoin():
            return replace(node, on=next(rest))
        case Project(_, items):
            return replace(node, items=tuple((column, next(rest)) for column, _ in items))
        case Aggregate(_, keys, aggs):
            return replace(
                node,
                keys=tuple((column, next(rest)) for column, _ in keys),
                aggs=tuple((column, agg.with_args(islice(rest, len(agg.args)))) for column, agg in aggs),
            )
        case Sort(_, keys):
            return replace(node, keys=tuple((next(rest), down, nulls) for _, down, nulls in keys))
        case Repeat():
            return replace(node, times=next(rest))
    raise AssertionError(f"{type(node).__name__} computes nothing")


__all__ = ["Stage", "optimise", "rewrite", "stages", "trace"]
