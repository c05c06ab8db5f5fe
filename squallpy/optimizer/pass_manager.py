"""Passes: named rewrites of a query, applied in the order of a list; one that is not required can be switched off."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from itertools import count, islice
from time import perf_counter
from typing import Any, Generic, TypeVar

from squallpy.base.records import dataclass
from squallpy.logical.apply import Apply
from squallpy.logical.column_allocator import ColumnAllocator
from squallpy.logical.constant_folding import Evaluate
from squallpy.logical.expressions import Compound, Expr, Rewriter, columns
from squallpy.logical.nodes import (
    Aggregate,
    ConditionalJoin,
    Filter,
    GroupingSets,
    Join,
    Node,
    NodeByPosition,
    Project,
    Repeat,
    Sort,
    TopN,
    Window,
    WindowFunctions,
    nodes,
    with_inputs,
)
from squallpy.logical.session_windows import SessionWindow

T = TypeVar("T")
NodeRule = Callable[[Node], Node | None]
ExprRule = Callable[[Expr], Expr | None]
Rewritten = dict[int, tuple[Node, Node]]  # operators and their rewritten forms, by the operator's id


@dataclass(frozen=True, slots=True)
class PassContext(ColumnAllocator):
    """Inputs of passes besides the query, and new columns.

    Args:
        evaluate: Computes a constant expression as the runtime would.
        report_late: Rows that come after their window has passed are reported, with all of their columns.
        disabled: Names of the passes and rules that are switched off.
        empty_groups: The values of groups that have no row, by the column that counts rows; passes add to it.
    """

    evaluate: Evaluate
    report_late: bool = False
    disabled_passes: frozenset[str] = frozenset()
    empty_groups: dict[int, dict[int, Expr]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pass(Generic[T]):
    """A rewrite of a plan, of a lowered query or of a program. `reason` gives the reason for it and for its place."""

    name: str
    reason: str
    is_required: bool = field(default=False, kw_only=True)

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that it is made of, if it is."""
        return ()

    def steps(self, value: T, context: PassContext) -> Iterator[tuple[str, T]]:
        """Yield the value after each step, with the name of the step."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class FunctionPass(Pass[T]):
    """A pass that is one function."""

    run: Callable[[T, PassContext], T]

    def steps(self, value: T, context: PassContext) -> Iterator[tuple[str, T]]:
        yield self.name, self.run(value, context)


@dataclass(frozen=True, slots=True)
class RulePass(Pass[Node]):
    """Rules that are applied together, bottom-up, until none of them changes the plan."""

    nodes: tuple[NodeRule, ...] = ()
    exprs: tuple[ExprRule, ...] = ()
    evaluating_rules: tuple[Callable[[Evaluate], ExprRule], ...] = ()  # tried before `exprs`

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(rule.__name__ for rule in (*self.evaluating_rules, *self.exprs, *self.nodes))

    def steps(self, value: Node, context: PassContext) -> Iterator[tuple[str, Node]]:
        exprs = [(make.__name__, make(context.evaluate)) for make in self.evaluating_rules]
        exprs += [(rule.__name__, rule) for rule in self.exprs]
        passes = [(rule.__name__, _over_nodes(rule)) for rule in self.nodes]
        compounds = _Compounds()
        passes += [(name, _over_expressions(rule, compounds)) for name, rule in exprs]
        passes = [(name, change) for name, change in passes if name not in context.disabled_passes]
        known = defaultdict[str, Rewritten](dict)
        changed = True
        while changed:
            changed = False
            for name, change in passes:
                after = _rewritten(value, change, known[name])
                if after is not value:
                    check_same_output(value, after, name)
                    value, changed = after, True
                    yield name, after


class PassObserver:
    """An observer of running passes; this one does nothing."""

    def observe_step(self, name: str, before: Any, after: Any) -> None:
        """Receive the query after the step `name`, changed or not."""

    def took(self, name: str, seconds: float) -> None:
        """Receive the seconds of a pass."""


def run_passes(value: T, passes: Sequence[Pass[T]], context: PassContext, observer: PassObserver | None = None) -> T:
    """Apply the passes in their order, those aside that are switched off."""
    for each in passes:
        if each.name in context.disabled_passes:
            continue
        start = perf_counter()
        for name, after in each.steps(value, context):
            if observer:
                observer.observe_step(name, value, after)
            value = after
        if observer:
            observer.took(each.name, perf_counter() - start)
    return value


def fresh_ids(*plans: Node) -> Iterator[int]:
    """Yield ids above those of all columns of some plans."""
    return count(1 + max((c.id for plan in plans for node in nodes(plan) for c in node.output), default=0))


def node_pass(
    name: str, why: str, rule: Callable[[Node, PassContext], Node | None], required: bool = False
) -> Pass[Node]:
    """Make a pass of one rule that needs new columns; it is tried on each operator before the inputs of the outcome."""

    def run(plan: Node, context: PassContext) -> Node:
        after = top_down(plan, lambda node: rule(node, context))
        check_same_output(plan, after, name)
        return after

    return FunctionPass(name, why, run, is_required=required)


def top_down(plan: Node, rule: NodeRule) -> Node:
    """Rewrite each operator once, however many others read it, before the inputs of the outcome."""
    known: Rewritten = {}

    def rewritten(node: Node) -> Node:
        if id(node) not in known:
            after = rule(node) or node
            known[id(node)] = node, with_inputs(after, tuple(map(rewritten, after.inputs)))
        return known[id(node)][1]

    return rewritten(plan)


def bottom_up(change: Callable[[Node, Node], Node]) -> Callable[[Node], Node]:
    """Make the rewriting of plans that changes each operator once, however many others read it, after its inputs.

    Args:
        change: Takes an operator as it was, and the same over its rewritten inputs.
    """
    known: Rewritten = {}

    def rewritten(node: Node) -> Node:
        if id(node) not in known:
            known[id(node)] = node, change(node, with_inputs(node, tuple(map(rewritten, node.inputs))))
        return known[id(node)][1]

    return rewritten


def check_same_output(before: Node, after: Node, rule: str) -> None:
    """Assert that a rewrite keeps the output columns and their types."""
    for a, b in zip(before.output, after.output, strict=True):
        assert a == b, f"rule {rule} changed {a.name}: {a.type} → {b.name}: {b.type}"


def _over_nodes(rule: NodeRule) -> Callable[[Node], Node]:
    return lambda node: rule(node) or node


class _Compounds:
    """The expressions of operators that are more than a column or a constant, which rules leave as they are.

    A projection of n columns, which each operator of a chain has, is looked through once for all rules.
    """

    def __init__(self) -> None:
        self._known = dict[int, tuple[Node, tuple[tuple[int, Expr], ...]]]()  # by the operator's id; keeps it alive

    def of(self, node: Node) -> tuple[tuple[int, Expr], ...]:
        """List the compound expressions of an operator, with their places among all of them."""
        if id(node) not in self._known:
            found = ((place, expr) for place, expr in enumerate(expressions(node)) if isinstance(expr, Compound))
            self._known[id(node)] = node, tuple(found)
        return self._known[id(node)][1]


def _over_expressions(rule: ExprRule, compounds: _Compounds) -> Callable[[Node], Node]:
    rewrite = Rewriter(rule)

    def change(node: Node) -> Node:
        new = {place: after for place, expr in compounds.of(node) if (after := rewrite(expr)) is not expr}
        if not new:
            return node
        return with_expressions(node, tuple(new.get(place, expr) for place, expr in enumerate(expressions(node))))

    return change


def _rewritten(node: Node, change: Callable[[Node], Node], known: Rewritten) -> Node:
    """Rewrite each operator until nothing changes, after its inputs; pushed predicates reach the end of a chain.

    Args:
        known: Operators and what became of them, in earlier turns as well.
    """
    if id(node) not in known:
        inputs = tuple(_rewritten(child, change, known) for child in node.inputs)
        before = with_inputs(node, inputs)
        after = change(before)
        if after is before:
            known[id(before)] = before, before
        known[id(node)] = node, before if after is before else _rewritten(after, change, known)
    return known[id(node)][1]


def expressions(node: Node) -> tuple[Expr, ...]:
    """List the expressions that an operator computes, in a fixed order."""
    match node:
        case Filter(_, predicate):
            return (predicate,)
        case Join(_, _, on) if on is not None:
            return (on,)
        case ConditionalJoin(_, _, on):
            return (on,)
        case Apply(_, _, _, parameters, on):
            return (*(expr for _, expr in parameters), on)
        case Project(_, items):
            return tuple(expr for _, expr in items)
        case Aggregate(_, keys, aggs) | GroupingSets(_, keys, _, aggs):
            return (*(expr for _, expr in keys), *(arg for _, agg in aggs for arg in agg.args))
        case Sort(_, keys):
            return tuple(expr for expr, _, _ in keys)
        case TopN(_, keys, partition=partition):
            return (*(expr for expr, _, _ in keys), *partition)
        case WindowFunctions(_, functions):
            return tuple(expr for _, function in functions for expr in function.expressions)
        case SessionWindow(_, partition, time):
            return (*partition, time)
        case Repeat(_, times):
            return (times,)
    return ()


def columns_read(plan: Node) -> dict[int, frozenset[int]]:
    """Find the columns of each operator, by its identity, that operators above it read or that come out of the plan."""
    read: dict[int, frozenset[int]] = {id(plan): plan.ids}
    for node in reversed(list(nodes(plan))):
        own = frozenset(c.id for expr in expressions(node) for c in columns(expr))
        if isinstance(node, Window) and node.time is not None:
            own |= {node.time.id}
        if not isinstance(node, Project | Aggregate):
            own |= read[id(node)]
        for child in node.inputs:
            mine = child.ids if isinstance(node, NodeByPosition) else own & child.ids
            read[id(child)] = read.get(id(child), frozenset()) | mine
    return read


def with_expressions(node: Node, new: tuple[Expr, ...]) -> Node:
    """Replace the expressions of a node, in the order of `expressions`."""
    rest = iter(new)
    match node:
        case Filter():
            return replace(node, predicate=next(rest))
        case Join() | ConditionalJoin():
            return replace(node, on=next(rest))
        case Apply(_, _, _, parameters):
            return replace(node, parameters=tuple((column, next(rest)) for column, _ in parameters), on=next(rest))
        case Project(_, items):
            return replace(node, items=tuple((column, next(rest)) for column, _ in items))
        case Aggregate(_, keys, aggs) | GroupingSets(_, keys, _, aggs):
            return replace(
                node,
                keys=tuple((column, next(rest)) for column, _ in keys),
                aggs=tuple((column, agg.with_args(islice(rest, len(agg.args)))) for column, agg in aggs),
            )
        case Sort(_, keys):
            return replace(node, keys=tuple((next(rest), down, nulls) for _, down, nulls in keys))
        case TopN(_, keys, partition=partition):
            ordered = tuple((next(rest), down, nulls) for _, down, nulls in keys)
            return replace(node, keys=ordered, partition=tuple(next(rest) for _ in partition))
        case WindowFunctions(_, functions):
            new_ones = ((c, f.with_expressions(islice(rest, len(f.expressions)))) for c, f in functions)
            return replace(node, functions=tuple(new_ones))
        case SessionWindow():
            return replace(node, partition=tuple(next(rest) for _ in node.partition), time=next(rest))
        case Repeat():
            return replace(node, times=next(rest))
    raise AssertionError(f"{type(node).__name__} computes nothing")
