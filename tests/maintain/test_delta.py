"""Delta rules and normal form, against evaluation by definition on random small multisets."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.types import BOOLEAN, INT
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import Call, Column
from squallpy.maintain.relational.calculus import Cmp, Plus, Prod, Rel, Sum, Term, Values, variables
from squallpy.maintain.relational.delta import delta, monomials
from squallpy.testing.naive import Bag, Binding, add, bag_union, evaluate

RELATIONS = [
    Relation(name, (Field("p", INT, False), Field("q", INT, False)), stream=True, format="csv") for name in "rst"
]
VARIABLES = [Column(i, name, INT, False) for i, name in enumerate("abcd")]

bags = st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 2)), st.integers(-2, 2).filter(bool), max_size=5)
databases = st.fixed_dictionaries({r.name: bags for r in RELATIONS})
atoms = st.builds(
    lambda relation, x, y: Rel(relation, (("p", x), ("q", y))),
    st.sampled_from(RELATIONS), st.sampled_from(VARIABLES), st.sampled_from(VARIABLES),
)  # fmt: skip


@st.composite
def products(draw: st.DrawFn) -> Term:
    """Atoms, which may repeat a relation or a variable, then a comparison and a value over what they bind."""
    joined = draw(st.lists(atoms, min_size=1, max_size=3))
    bound = sorted(variables(Prod(tuple(joined))), key=lambda v: v.id)
    one, other = draw(st.sampled_from(bound)), draw(st.sampled_from(bound))
    more: list[Term] = []
    if draw(st.booleans()):
        more.append(Cmp(Call(draw(st.sampled_from(["<", "<>", ">="])), (one, other), BOOLEAN, False)))
    if draw(st.booleans()):
        more.append(Values(((one, other),)))
    return Prod((*joined, *more))


@st.composite
def terms(draw: st.DrawFn) -> Term:
    """Sum_[keys](product + product …), the keys bound by all of them."""
    parts = draw(st.lists(products(), min_size=1, max_size=2))
    shared = sorted(frozenset.intersection(*(variables(p) for p in parts)), key=lambda v: v.id)
    keys = draw(st.lists(st.sampled_from(shared), unique=True)) if shared else []
    return Sum(tuple(keys), Plus(tuple(Sum(tuple(keys), p) for p in parts)))


def total(term: Term, contents: dict[str, Bag], changes: dict[str, Bag]) -> dict[Binding, int]:
    return {binding: n for binding, n in evaluate(term, contents, changes).items() if n}


@given(term=terms(), contents=databases, change=bags, name=st.sampled_from("rst"))
def property_delta_is_the_difference(term: Term, contents: dict[str, Bag], change: Bag, name: str) -> None:
    """Q(R + ΔR) = Q(R) + Δ_R Q(R, ΔR), for self-joins too."""
    after = evaluate(term, {**contents, name: bag_union(contents[name], change)}, {})
    told: Counter[Binding] = Counter(evaluate(term, contents, {}))
    add(told, evaluate(delta(term, name), contents, {name: change}))
    assert {b: n for b, n in told.items() if n} == dict(after)


@given(term=terms(), contents=databases)
def property_normal_form_means_the_same(term: Term, contents: dict[str, Bag]) -> None:
    assert isinstance(term, Sum)
    told: Counter[Binding] = Counter()
    for factors, values in monomials(term):
        add(told, evaluate(Sum(term.keys, Prod((*factors, values))), contents, {}))
    assert {b: n for b, n in told.items() if n} == total(term, contents, {})


@given(term=terms(), contents=databases, first=bags, second=bags)
def property_deltas_commute(term: Term, contents: dict[str, Bag], first: Bag, second: Bag) -> None:
    """Changes of two relations give the same, whichever comes first."""
    results = []
    for order in ((("r", first), ("s", second)), (("s", second), ("r", first))):
        now, told = dict(contents), Counter(evaluate(term, contents, {}))
        for name, change in order:
            add(told, evaluate(delta(term, name), now, {name: change}))
            now[name] = bag_union(now[name], change)
        results.append({b: n for b, n in told.items() if n})
    assert results[0] == results[1]
