"""The ring calculus by its definition, tuple by tuple: what delta rules and normal forms are compared with.

    evaluate(Sum((b,), Prod((R(a, b), S(b, c)))), {"r": …, "s": …}, {})   →   {{b: 2}: 3}

Payloads are integers. A result maps tuples, as frozen sets of (variable id, value), to payloads that are not 0.
"""

import operator
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

from squallpy.logical.expressions import Call, Column, Expr, Literal
from squallpy.program.calculus import Assign, Cmp, Plus, Prod, Rel, Sum, Term, Values, relations

Binding = frozenset[tuple[int, int]]
Bag = Mapping[tuple[int, ...], int]  # rows, in the order of a relation's fields, and their multiplicities
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip
NOTHING: Binding = frozenset()


def evaluate(
    term: Term, contents: Mapping[str, Bag], changes: Mapping[str, Bag], given: Binding = NOTHING
) -> Counter[Binding]:
    """Evaluate a term to its tuples that agree with `given`, over relations and (for Δ atoms) their changes."""
    out: Counter[Binding] = Counter()
    match term:
        case Rel(relation, fields, delta, after):
            names = [f.name for f in relation.fields]
            was, change = contents.get(relation.name, {}), changes.get(relation.name, {})
            for row, mult in (change if delta else bag_union(was, change) if after else was).items():
                found = extend_binding(given, ((v.id, row[names.index(name)]) for name, v in fields))
                if found is not None:
                    out[found] += mult
        case Cmp(predicate):
            out[given] += bool(value(predicate, given))
        case Assign(variable, expr):
            found = extend_binding(given, [(variable.id, value(expr, given))])
            if found is not None:
                out[found] += 1
        case Values(lanes):
            (lane,) = lanes
            product = 0 if lane is None else 1
            for factor in lane or ():
                product *= value(factor, given)
            out[given] += product
        case Prod(terms):
            out[given] = 1
            for inner in terms:
                longer: Counter[Binding] = Counter()
                for left, payload in out.items():
                    for right, other in evaluate(inner, contents, changes, left).items():
                        longer[right] += payload * other
                out = longer
        case Plus(terms):
            for inner in terms:
                add(out, evaluate(inner, contents, changes, given))
        case Sum(keys, inner):
            kept = {v.id for v in keys} | {id for id, _ in given}
            for found, payload in evaluate(inner, contents, changes, given).items():
                out[frozenset((id, v) for id, v in found if id in kept)] += payload
    return Counter({binding: payload for binding, payload in out.items() if payload})


def expand_delta(term: Term, relation: str) -> Term:
    """Derive the change of a term by the paper's rule for products, with 2ⁿ − 1 terms.

    No term reads a relation as it is after the batch.

    Δ(A ⋈ B)   →   ΔA ⋈ B  +  A ⋈ ΔB  +  ΔA ⋈ ΔB
    """
    match term:
        case Rel(changed) if changed.name == relation:
            return replace(term, delta=True)
        case Plus(terms):
            return Plus(tuple(expand_delta(t, relation) for t in terms))
        case Prod(terms):
            mine = [i for i, t in enumerate(terms) if relation in relations(t)]
            chosen = (some for n in range(1, len(mine) + 1) for some in combinations(mine, n))
            changes = [expand_delta(t, relation) if i in mine else t for i, t in enumerate(terms)]
            return Plus(
                tuple(Prod(tuple(changes[i] if i in some else t for i, t in enumerate(terms))) for some in chosen)
            )
        case Sum(keys, inner):
            return Sum(keys, expand_delta(inner, relation))
    return Plus(())


def extend_binding(given: Binding, pairs: Any) -> Binding | None:
    """Extend a binding by more variables; None if they contradict it."""
    bound = dict(given)
    for id, found in pairs:
        if bound.setdefault(id, found) != found:
            return None
    return frozenset(bound.items())


def value(expr: Expr, given: Binding) -> Any:
    """Evaluate a scalar expression of integers."""
    match expr:
        case Column(id):
            return dict(given)[id]
        case Literal(constant):
            return constant
        case Call(name, (left, right)):
            return OPERATORS[name](value(left, given), value(right, given))
    raise AssertionError(f"not in the naive calculus: {expr}")


def add(total: Counter[Binding], more: Mapping[Binding, int], times: int = 1) -> None:
    """Add `more`, multiplied by `times`, to `total` in place."""
    for binding, payload in more.items():
        total[binding] += times * payload


def bag_union(a: Bag, b: Bag) -> Bag:
    """Add two bags: their multiplicities are summed, and rows with a sum of 0 are left out."""
    return {row: n for row in {**a, **b} if (n := a.get(row, 0) + b.get(row, 0))}
