"""Filters pushed down to the inputs that they read."""

from dataclasses import replace

from squallpy.logical.expressions import (
    TRUE,
    Expr,
    Literal,
    columns,
    conjunction,
    conjuncts,
    disjunction,
    disjuncts,
    substitute,
)
from squallpy.logical.nodes import (
    Aggregate,
    ConditionalJoin,
    Filter,
    Join,
    Node,
    Project,
    Repeat,
    Scan,
    Union,
    Window,
    nodes,
)
from squallpy.logical.null_folding import fold_condition, fold_nulls


def decide_predicate(node: Node) -> Node | None:
    """Decide a predicate, for which NULL is FALSE: σ_{CASE WHEN p THEN TRUE WHEN q THEN NULL ELSE FALSE END}(x) →
    σ_p(x)"""
    match node:
        case Filter(child, predicate):
            after = fold_condition(predicate)
            return Filter(child, after) if after != predicate else None
        case Join(_, _, on) | ConditionalJoin(_, _, on) if on is not None:
            after = fold_condition(on)
            return replace(node, on=after) if after != on else None
    return None


def drop_true_predicate(node: Node) -> Node | None:
    """Drop a predicate that is TRUE: σ_TRUE(x) → x; r ⋈_TRUE s → r × s"""
    match node:
        case Filter(child, predicate) if predicate == TRUE:
            return child
        case Join(left, right, on) if on == TRUE:
            return Join(left, right)
    return None


def merge_filters(node: Node) -> Node | None:
    """Merge two filters: σ_p(σ_q(x)) → σ_{q ∧ p}(x)"""
    match node:
        case Filter(Filter(child, inner), outer):
            return Filter(child, conjunction((inner, outer)))
    return None


def push_filter_below_project(node: Node) -> Node | None:
    """Push a filter below a projection, in terms of its inputs: σ(π(x)) → π(σ(x))"""
    match node:
        case Filter(Project(child, items), predicate):
            below = fold_nulls(substitute(predicate, {c.id: e for c, e in items}))
            return Project(Filter(child, below), items)
    return None


def push_filter_below_window(node: Node) -> Node | None:
    """Push a filter below a window of time, not of rows, for it may change which rows are last: σ(window(x)) →
    window(σ(x))"""
    match node:
        case Filter(Window(child, spec) as window, predicate) if not spec.frame.rows:
            return replace(window, child=Filter(child, predicate))
    return None


def push_filter_below_union(node: Node) -> Node | None:
    """Push a filter into the inputs of a union: σ(r ∪ s) → σ(r) ∪ σ(s)"""
    match node:
        case Filter(Union(children, output) as union, predicate):
            names = [dict[int, Expr](zip((c.id for c in output), child.output, strict=True)) for child in children]
            below = (Filter(child, substitute(predicate, own)) for child, own in zip(children, names, strict=True))
            return replace(union, children=tuple(below))
    return None


def drop_input_of_union(node: Node) -> Node | None:
    """Drop an input of a union that a constant rules out: σ_FALSE(r) ∪ s → s"""
    match node:
        case Union(children, output):
            left = tuple(child for child in children if not is_never(child)) or children[:1]
            if len(left) == 1:
                return Project(left[0], tuple(zip(output, left[0].output, strict=True)))
            return Union(left, output) if len(left) < len(children) else None
    return None


def is_never(node: Node) -> bool:
    """True if a plan has no rows, whatever its inputs hold."""
    match node:
        case Filter(_, Literal(value)) if not value:
            return True
        case Aggregate(_, ()):
            return False
        case Filter(child) | Project(child) | Aggregate(child) | ConditionalJoin(child) | Window(child):
            return is_never(child)
        case Join(left, right):
            return is_never(left) or is_never(right)
        case Union(children):
            return all(map(is_never, children))
    return False


def push_filter_below_aggregate(node: Node) -> Node | None:
    """Push conjuncts that read only keys below an aggregate: σ_{p(k) ∧ q}(γ_k(r)) → σ_q(γ_k(σ_p(r)))"""
    match node:
        case Filter(Aggregate(child, keys) | Repeat(Aggregate(child, keys), number=None) as grouped, predicate):
            names = {column.id: expr for column, expr in keys}
            mine = tuple(c for c in conjuncts(predicate) if columns(c) and all(v.id in names for v in columns(c)))
            rest = tuple(c for c in conjuncts(predicate) if c not in mine)
            if not mine:
                return None
            aggregate = grouped.child if isinstance(grouped, Repeat) else grouped
            below = replace(aggregate, child=Filter(child, substitute(conjunction(mine), names)))
            moved = replace(grouped, child=below) if isinstance(grouped, Repeat) else below
            return Filter(moved, conjunction(rest)) if rest else moved
    return None


def restrict_inputs_of_or(node: Node) -> Node | None:
    """Restrict each input by what an OR implies for it: σ_{(r₁ ∧ s₁) ∨ (r₂ ∧ s₂)}(r × s) → σ_…(σ_{r₁ ∨ r₂}(r) ×
    σ_{s₁ ∨ s₂}(s))"""
    match node:
        case Filter(Join() as child, predicate):
            known = conjuncts(predicate)
            implied = [i for c in known for scan in scans(child) if (i := _implied_condition(c, scan)) is not None]
            new = tuple(i for i in implied if i not in known)
            if new and not any(_is_inside(child, i) for i in new):
                return Filter(child, conjunction((*known, *new)))
    return None


def _implied_condition(conjunct: Expr, scan: Scan) -> Expr | None:
    """Find the condition that an OR over several inputs implies for one of them."""
    mine = frozenset(scan.columns)
    arms = [conjuncts(arm) for arm in disjuncts(conjunct)]
    if len(arms) == 1 or columns(conjunct) <= mine:
        return None
    own = [tuple(c for c in arm if columns(c) and columns(c) <= mine) for arm in arms]
    return disjunction(map(conjunction, own)) if all(own) else None


def _is_inside(plan: Node, predicate: Expr) -> bool:
    """True if a filter of the plan has a predicate as a conjunct."""
    return any(isinstance(node, Filter) and predicate in conjuncts(node.predicate) for node in nodes(plan))


def push_filter_below_join(node: Node) -> Node | None:
    """Push conjuncts to the inputs of a join that they read: σ_{p(r) ∧ q(s) ∧ t(r,s)}(r ⋈ s) → σ_p(r) ⋈_t σ_q(s)"""
    match node:
        case Filter(Join(left, right, on), predicate):
            every = conjunction(p for p in (on, predicate) if p is not None)
        case Join(left, right, on) if on is not None:
            every = on
        case _:
            return None
    to_left, rest = split_by_reader(every, left)
    to_right, both = split_by_reader(conjunction(rest), right)
    if isinstance(node, Join) and not to_left and not to_right:
        return None
    return Join(
        Filter(left, conjunction(to_left)) if to_left else left,
        Filter(right, conjunction(to_right)) if to_right else right,
        conjunction(both) if both else None,
    )


def split_by_reader(predicate: Expr, node: Node) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Split conjuncts into those that read only columns of a node, and the rest."""
    ids, every = {c.id for c in node.output}, tuple(c for c in conjuncts(predicate) if c != TRUE)
    mine = tuple(c for c in every if columns(c) and {v.id for v in columns(c)} <= ids)
    return mine, tuple(c for c in every if c not in mine)


def scans(plan: Node) -> list[Scan]:
    """List the scans of a plan."""
    return [node for node in nodes(plan) if isinstance(node, Scan)]
