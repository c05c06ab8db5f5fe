"""Delta rules and normal form, against evaluation by definition on random small multisets."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.types import BOOLEAN, INT
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import Call, Column
from squallpy.maintain.relational.delta_rules import delta, monomials, telescope
from squallpy.program.calculus import Cmp, Plus, Prod, Rel, Sum, Term, Values, variables
from squallpy.testing.naive_calculus import Bag, Binding, add, bag_union, evaluate, expand_delta

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


@given(term=terms(), contents=databases, change=bags, name=st.sampled_from("rst"))
def property_delta_is_that_of_all_terms(term: Term, contents: dict[str, Bag], change: Bag, name: str) -> None:
    """One factor at a time, and by the rule for two factors that both change."""
    changes = {name: change}
    assert total(delta(term, name), contents, changes) == total(expand_delta(term, name), contents, changes)


@given(term=products(), contents=databases, change=bags, name=st.sampled_from("rst"))
def property_delta_takes_factors_in_any_order(term: Prod, contents: dict[str, Bag], change: Bag, name: str) -> None:
    body = [f for f in term.terms if not isinstance(f, Values | Prod | Plus | Sum)]
    order = telescope(body, next(r for r in RELATIONS if r.name == name))
    assert sorted(order) == list(range(len(body)))
    turned = Prod((*(body[i] for i in order), *term.terms[len(body) :]))
    changes, keys = {name: change}, tuple(sorted(variables(term), key=lambda v: v.id))
    assert total(Sum(keys, delta(turned, name)), contents, changes) == total(
        Sum(keys, expand_delta(term, name)), contents, changes
    )


def test_delta_has_a_term_for_each_time_that_a_relation_is_joined() -> None:
    r, (a, b, c, d) = RELATIONS[0], VARIABLES
    chain = Prod(tuple(Rel(r, (("p", x), ("q", y))) for x, y in ((a, b), (b, c), (c, d))))
    found = [
        "".join("Δ" if f.delta else "+" if f.is_after else "-" for f in factors if isinstance(f, Rel))
        for factors, _ in monomials(delta(chain, "r"))
    ]
    assert found == ["Δ--", "+Δ-", "++Δ"]


def test_delta_follows_a_chain_however_it_is_written() -> None:
    """So what is joined on either side of ΔR is all of before the batch, or all of after it."""
    r, (a, b, c, d) = RELATIONS[0], VARIABLES
    body = [Rel(r, (("p", x), ("q", y))) for x, y in ((b, c), (a, b), (c, d))]
    assert telescope(body, r) in ([1, 0, 2], [2, 0, 1])


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
