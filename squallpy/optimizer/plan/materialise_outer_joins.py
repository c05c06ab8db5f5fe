"""Materialisation of sums of products (outer joins, unions), so that a join of several of them is one product.

    (A ∪ B) ⋈ (C ∪ D)   →   A ⋈ P  ∪  B ⋈ P,   P := the distinct rows of C ∪ D, each with its count

    L ⟕_{l = k} R   →   L ⋈_{l <=> k} P,   P(k, r) := R(k, r)  ∪  σ_{found = 0}(E(k, found)), with NULLs for r
                                           E := Aggregate by k: COUNT of R, of L's values of l ∪ R

Multiplied out, n outer joins of a star are 2ⁿ products. P has the matches of each value of l, or a row of NULLs: it
changes with R, and when L gets a value of l that R lacks. Values that L no longer has, or never had, are rows of P that
join nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from squallpy.base.types import BIGINT, BOOLEAN
from squallpy.logical.aggregate_calls import Agg
from squallpy.logical.expression_builders import call
from squallpy.logical.expressions import (
    FALSE,
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    as_nullable,
    column_of,
    columns,
    conjunction,
    conjuncts,
    not_null,
    substitute,
)
from squallpy.logical.join_matches import reads_only
from squallpy.logical.nodes import (
    Aggregate,
    AntiJoin,
    ConditionalJoin,
    Filter,
    Join,
    LeftJoin,
    Node,
    Project,
    Repeat,
    SemiJoin,
    Union,
    Window,
    with_inputs,
)
from squallpy.optimizer.plan.expand_outer_joins import rows_without_match
from squallpy.optimizer.plan.groupjoin import EmptyGroups, Pair, groupjoin, groups, values

MOST = 8  # largest number of products that a query, or the input of an aggregate, is multiplied out to
MOST_JOINED = 2  # of products of an input of an outer join that is materialised; all joins above read each of them


def materialise_outer_joins(
    plan: Node, ids: Iterator[int], empty_groups: EmptyGroups, has_groupjoins: bool = True
) -> Node:
    """Materialise outer joins and unions where a query, or the input of an aggregate, would be too many products.

    A chain of outer joins whose rows are a sum of products nevertheless, as FULL JOINs are, is materialised in between.

    Args:
        empty_groups: Learns the values of groups that have no row, as `groupjoin` says.
        has_groupjoins: Outer joins become groupjoins later, or else unions of differences.
    """
    counted: dict[int, tuple[Node, int]] = {}
    left: dict[int, tuple[Node, int]] = {}
    bags: dict[int, tuple[Node, Node]] = {}
    known: dict[tuple[bool, int], tuple[Node, Node]] = {}  # by whether outer joins are materialised

    def products(node: Node) -> int:
        """Count the products of a region when it is multiplied out, or of its largest part."""
        if id(node) not in counted:
            counted[id(node)] = node, _products(node, [products(child) for child in _region(node)], ids, has_groupjoins)
        return counted[id(node)][1]

    def products_left(node: Node) -> int:
        """Count the products of a region when its outer joins are materialised."""
        if id(node) not in left:
            left[id(node)] = node, _sum_products_left(node, [products_left(child) for child in _region(node)])
        return left[id(node)][1]

    def materialised(node: Node) -> Node:
        """Materialise an input whose outer joins, one after the other, have made too many products."""
        if products_left(node) <= _most_joined(node):
            return node
        if id(node) not in bags:
            bags[id(node)] = node, bag(node, ids)
        return bags[id(node)][1]

    def rewritten(node: Node, few: bool) -> Node:
        key = few, id(node)
        if key not in known:
            after = node
            if few:
                if isinstance(node, ConditionalJoin):
                    after = with_inputs(node, tuple(map(materialised, node.inputs)))
                after = _materialise(after, products, ids, empty_groups) or after
            same = {id(child) for child in _region(after)}
            inputs = (rewritten(c, few) if id(c) in same else region(c) for c in after.inputs)
            known[key] = node, with_inputs(after, tuple(inputs))
        return known[key][1]

    def region(node: Node) -> Node:
        return rewritten(node, products(node) > MOST)

    return region(plan)


def _region(node: Node) -> tuple[Node, ...]:
    """List the inputs that are multiplied out with an operator: all but those of an aggregate or a window."""
    return () if isinstance(node, Aggregate | Repeat | Window) else node.inputs


def _products(node: Node, inputs: list[int], ids: Iterator[int], has_groupjoins: bool) -> int:
    match node:
        case Join(_, _, on) if on is not None and _is_constant(node):
            return max(inputs)  # rows of constants: lowering drops the pairs that are not equal
        case Join():
            return inputs[0] * inputs[1]
        case LeftJoin() if not has_groupjoins:
            return inputs[0] * (inputs[1] + 2)
        case LeftJoin():
            return inputs[0] if groupjoin(node, ids, {}) else inputs[0] * (inputs[1] + 1)
        case AntiJoin():
            return 2 * inputs[0]
        case SemiJoin():
            return inputs[0]
        case Union():
            return sum(inputs)
    return max(inputs, default=1)


def _sum_products_left(node: Node, inputs: list[int]) -> int:
    match node:
        case Join():
            return inputs[0] if min(inputs) > 1 else inputs[0] * inputs[1]
        case ConditionalJoin():
            return inputs[0] if inputs[0] <= _most_joined(node.left) else 1
        case Union():
            return sum(inputs)
    return max(inputs, default=1)


def _most_joined(node: Node) -> int:
    """Return the largest number of products that an input of an outer join may be; rows of constants cost nothing."""
    return MOST if _is_constant(node) else MOST_JOINED


def _is_constant(node: Node) -> bool:
    """True if a plan reads no rows, as VALUES does: one row, that of an aggregate over nothing, is all there is."""
    match node:
        case Aggregate(Filter(_, predicate), ()):
            return predicate == FALSE
        case Project() | Filter() | Union() | Join():
            return all(map(_is_constant, node.inputs))
    return False


def _materialise(
    node: Node, products: Callable[[Node], int], ids: Iterator[int], empty_groups: EmptyGroups
) -> Node | None:
    """Replace one operator of a region with too many products by a materialised one."""
    match node:
        case Join(left, right, on) if products(left) > 1 and products(right) > 1:
            return Join(left, bag(right, ids), on)
        case LeftJoin():
            return groupjoin(node, ids, empty_groups) or optional(node, ids)
        case AntiJoin(left, right, on):
            return rows_without_match(left, right, on, ids, empty_groups)
    return None


def bag(node: Node, ids: Iterator[int]) -> Node:
    """Materialise the rows of a plan: each distinct row with its multiplicity."""
    keys = tuple((replace(c, id=next(ids)), c) for c in node.output)
    times = Column(next(ids), "times", BIGINT, False)
    kept = Repeat(Aggregate(node, keys, ((times, Agg("count", None)),)), times)
    return Project(kept, tuple((c, key) for key, c in keys))


def optional(join: LeftJoin, ids: Iterator[int]) -> Node:
    """Write an outer join as a join with a bag that has, for each value, its matches or a row of NULLs."""
    pairs, found = _pair_values(join, ids)
    not_null_test = conjunction(not_null(p.right) for p in pairs if p.strict and p.right.nullable)
    count = Column(next(ids), "found", BIGINT, False)
    every = Aggregate(found, tuple((p.column, p.right) for p in pairs), ((count, Agg("count", None)),))
    by_value = groups(join.left, every, pairs, ids) if pairs else every
    lost = Filter(by_value, call("=", count, Literal(0, BIGINT)))
    theirs = join.right.output
    rows = Project(
        Filter(found, not_null_test) if not_null_test != TRUE else found,
        tuple((replace(p.column, id=next(ids)), p.right) for p in pairs)
        + tuple((replace(c, id=next(ids)), c) for c in theirs),
    )
    nothing = Project(
        lost,
        tuple((replace(p.column, id=next(ids)), p.column) for p in pairs)
        + tuple((replace(c, id=next(ids), nullable=True), Literal(None, c.type)) for c in theirs),
    )
    keys = tuple(replace(p.column, id=next(ids)) for p in pairs)
    shown = tuple(replace(c, id=next(ids), nullable=True) for c in theirs)
    padded = bag(Union((rows, nothing), (*keys, *shown)), ids)
    same = [Call("<=>", (p.left, key), BOOLEAN, False) for p, key in zip(pairs, keys, strict=True)]
    items = tuple((as_nullable(c), own) for c, own in zip(theirs, shown, strict=True))
    joined = Join(join.left, padded, conjunction(same) if same else None)
    return Project(joined, (*((c, c) for c in join.left.output), *items))


def _pair_values(join: LeftJoin, ids: Iterator[int]) -> tuple[tuple[Pair, ...], Node]:
    """Pair the left's values with the right's rows: rows with all columns of the right, and pairs of equal expressions.

    Where `on` only equates the two sides, the rows are those of the right; else they are those that the distinct values
    of the left's columns in `on` meet.
    """
    left, right, on = join.left, join.right, join.on
    ours, theirs = ({c.id for c in node.output} for node in (left, right))
    pairs: list[Pair] = []
    own: list[Expr] = []
    for conjunct in conjuncts(on):
        match conjunct:
            case _ if {c.id for c in columns(conjunct)} <= theirs:
                own += [conjunct] if conjunct != TRUE else []
            case Call("=" | "<=>" as name, (a, b)) if a.type == b.type and _is_between_sides(a, b, ours, theirs):
                here, there = (a, b) if {c.id for c in columns(a)} <= ours else (b, a)
                column = column_of(there, next(ids))
                pairs.append(Pair(name == "=", here, there, as_nullable(column)))
            case _:
                return _join_distinct_values(join, ids)
    return tuple(pairs), Filter(right, conjunction(own)) if own else right


def _join_distinct_values(join: LeftJoin, ids: Iterator[int]) -> tuple[tuple[Pair, ...], Node]:
    """Join the distinct values of the left's columns in `on` with the right's rows that they match."""
    ours = {c.id for c in join.left.output}
    read = tuple(sorted((c for c in columns(join.on) if c.id in ours), key=lambda c: c.id))
    inputs = tuple(
        Project(node, tuple((replace(c, id=next(ids)), expr) for c, expr in zip(read, exprs, strict=True)))
        for node, exprs in values(join.left, read)
    )
    every = Union(inputs, tuple(replace(c, id=next(ids), nullable=True) for c in read))
    keys = tuple(replace(c, id=next(ids)) for c in every.columns)
    distinct = Aggregate(every, tuple(zip(keys, every.columns, strict=True)), ())
    names: dict[int, Expr] = {c.id: key for c, key in zip(read, keys, strict=True)}
    met = Join(distinct, join.right, substitute(join.on, names))
    return tuple(Pair(False, c, key, replace(key, id=next(ids))) for c, key in zip(read, keys, strict=True)), met


def _is_between_sides(a: Expr, b: Expr, ours: set[int], theirs: set[int]) -> bool:
    """True if one expression reads only columns of the left, the other only columns of the right."""
    pairs = ((a, b), (b, a))
    return any(reads_only(here, ours) and reads_only(there, theirs) for here, there in pairs)
