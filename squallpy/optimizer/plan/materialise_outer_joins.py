"""What is a sum of products as a relation of its own, so that a join of several sums is one product.

    (A ∪ B) ⋈ (C ∪ D)   →   A ⋈ P  ∪  B ⋈ P,   P := the rows of C ∪ D, each with how often it is there

    L ⟕_{l = k} R   →   L ⋈_{l <=> k} P,   P(k, r) := R(k, r)  ∪  σ_{found = 0}(E(k, found)), with NULLs for r
                                           E := Aggregate by k: COUNT of R, of L's values of l ∪ R

Multiplied out, n outer joins of a star are 2ⁿ products. P has what each value of l finds, and a row of NULLs where that
is nothing: it changes as R does, and when a value of l comes that R lacks. Values that L no longer has, or never had,
are rows of P that join nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

from squallpy.base.types import BIGINT, BOOLEAN
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Column,
    Expr,
    Literal,
    column_of,
    columns,
    conjunction,
    conjuncts,
    not_null,
    substitute,
)
from squallpy.logical.functions import call
from squallpy.logical.nodes import Agg, Aggregate, Filter, Join, LeftJoin, Node, Project, Repeat, Union
from squallpy.optimizer.plan.groupjoin import Pair, groups, values


def bag(node: Node, fresh: Iterator[int]) -> Node:
    """The same rows and columns, kept: each distinct row, as often as it is there."""
    keys = tuple((replace(c, id=next(fresh)), c) for c in node.output)
    times = Column(next(fresh), "times", BIGINT, False)
    kept = Repeat(Aggregate(node, keys, ((times, Agg("count", None)),)), times)
    return Project(kept, tuple((c, key) for key, c in keys))


def optional(join: LeftJoin, fresh: Iterator[int]) -> Node:
    """The same rows and columns, as a join with a bag of what there is for each value, or of NULLs."""
    pairs, found = _met(join, fresh)
    asked = conjunction(not_null(p.there) for p in pairs if p.strict and p.there.nullable)
    count = Column(next(fresh), "found", BIGINT, False)
    every = Aggregate(found, tuple((p.column, p.there) for p in pairs), ((count, Agg("count", None)),))
    by_value = groups(join.left, every, pairs, fresh) if pairs else every
    lost = Filter(by_value, call("=", count, Literal(0, BIGINT)))
    theirs = join.right.output
    rows = Project(
        Filter(found, asked) if asked != TRUE else found,
        tuple((replace(p.column, id=next(fresh)), p.there) for p in pairs)
        + tuple((replace(c, id=next(fresh)), c) for c in theirs),
    )
    nothing = Project(
        lost,
        tuple((replace(p.column, id=next(fresh)), p.column) for p in pairs)
        + tuple((replace(c, id=next(fresh), nullable=True), Literal(None, c.type)) for c in theirs),
    )
    keys = tuple(replace(p.column, id=next(fresh)) for p in pairs)
    shown = tuple(replace(c, id=next(fresh), nullable=True) for c in theirs)
    padded = bag(Union((rows, nothing), (*keys, *shown)), fresh)
    same = [Call("<=>", (p.here, key), BOOLEAN, False) for p, key in zip(pairs, keys, strict=True)]
    items = tuple((replace(c, nullable=True), own) for c, own in zip(theirs, shown, strict=True))
    joined = Join(join.left, padded, conjunction(same) if same else None)
    return Project(joined, (*((c, c) for c in join.left.output), *items))


def _met(join: LeftJoin, fresh: Iterator[int]) -> tuple[tuple[Pair, ...], Node]:
    """How the left's values meet the right: rows with all of its columns, and pairs of a value and what equals it.

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
            case Call("=" | "<=>" as name, (a, b)) if a.type == b.type and _apart(a, b, ours, theirs):
                here, there = (a, b) if {c.id for c in columns(a)} <= ours else (b, a)
                column = column_of(there, next(fresh))
                pairs.append(Pair(name == "=", here, there, replace(column, nullable=True)))
            case _:
                return _paired(join, fresh)
    return tuple(pairs), Filter(right, conjunction(own)) if own else right


def _paired(join: LeftJoin, fresh: Iterator[int]) -> tuple[tuple[Pair, ...], Node]:
    """The right's rows beside each of the left's values that they meet."""
    ours = {c.id for c in join.left.output}
    read = tuple(sorted((c for c in columns(join.on) if c.id in ours), key=lambda c: c.id))
    inputs = tuple(
        Project(node, tuple((replace(c, id=next(fresh)), expr) for c, expr in zip(read, exprs, strict=True)))
        for node, exprs in values(join.left, read)
    )
    every = Union(inputs, tuple(replace(c, id=next(fresh), nullable=True) for c in read))
    keys = tuple(replace(c, id=next(fresh)) for c in every.columns)
    distinct = Aggregate(every, tuple(zip(keys, every.columns, strict=True)), ())
    names: dict[int, Expr] = {c.id: key for c, key in zip(read, keys, strict=True)}
    met = Join(distinct, join.right, substitute(join.on, names))
    return tuple(Pair(False, c, key, replace(key, id=next(fresh))) for c, key in zip(read, keys, strict=True)), met


def _apart(a: Expr, b: Expr, ours: set[int], theirs: set[int]) -> bool:
    """Does one read columns of ours, the other of theirs?"""
    x, y = ({c.id for c in columns(expr)} for expr in (a, b))
    return bool(x and y) and ((x <= ours and y <= theirs) or (x <= theirs and y <= ours))
