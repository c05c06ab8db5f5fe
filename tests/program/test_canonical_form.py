"""Canonical spellings against all renamings tried out."""

from collections.abc import Collection, Iterable
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squallpy.base.types import BOOLEAN, INT
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.expressions import Call, Column, Expr
from squallpy.program import canonical_form
from squallpy.program.calculus import Assign, Cmp, Factor, Rel, rename_factor, variables
from squallpy.program.canonical_form import _least_text, _Search, spell
from squallpy.program.components import Component, prune

RELATIONS = [Relation(name, tuple(Field(f, INT) for f in "abc"), True, "csv") for name in "rs"]
VARIABLES = [Column(i, f"v{i}", INT) for i in range(4)]
SUM = Column(4, "sum", INT)


@st.composite
def units(draw: st.DrawFn) -> Component:
    """Up to five atoms that share few variables, comparisons and a sum of them."""
    few = st.sampled_from(VARIABLES[: draw(st.integers(1, 4))])
    atoms = draw(
        st.lists(st.builds(rel, st.sampled_from(RELATIONS), st.lists(few, max_size=3)), min_size=1, max_size=5)
    )
    bound = sorted({v.id for atom in atoms for _, v in atom.fields})
    body: list[Factor] = list(atoms)
    keys = set[Column]()
    if bound:
        some = st.sampled_from([VARIABLES[id] for id in bound])
        less = st.builds(lambda a, b: Cmp(Call("<", (a, b), BOOLEAN, True)), some, some)
        body += draw(st.lists(less, max_size=3))
        keys = set(draw(st.lists(some, max_size=3)))
        if draw(st.booleans()):
            body.append(Assign(SUM, Call("+", (draw(some), draw(some)), INT, True)))
            keys.add(SUM)
    ordered = tuple(sorted(keys, key=lambda v: v.id))
    return Component(prune(tuple(body), ordered, ()), ordered, ((),))


def rel(relation: Relation, variables: list[Column]) -> Rel:
    return Rel(relation, tuple(zip("abc", variables, strict=False)))


@given(unit=units(), data=st.data())
def property_names_and_order_do_not_matter(unit: Component, data: st.DataObject) -> None:
    other = moved(unit, data)
    assert spell(other).text == spell(unit).text


@given(unit=units(), data=st.data())
def oracle_equal_texts_are_equal_units(unit: Component, data: st.DataObject) -> None:
    """Among units that are nearly alike: of the same factors, but for one."""
    some = [Component(unit.body[:i] + unit.body[i + 1 :], unit.keys, ((),)) for i in range(len(unit.body))]
    some = [u for u in some if set(u.keys) <= bound_by(u)]
    texts, names = [spell(moved(u, data)).text for u in some], [naive(u) for u in some]
    for i in range(len(some)):
        for j in range(i):
            assert (texts[i] == texts[j]) == (names[i] == names[j])


def oracle_of_a_symmetric_unit() -> None:
    """Cycles of eight: no refinement tells their variables apart, nor them from two cycles of four."""
    one = cycle([0, 1, 2, 3, 4, 5, 6, 7])
    assert spell(one).text == spell(cycle([3, 1, 4, 0, 5, 7, 2, 6])).text
    assert spell(one).text != spell(Component(cycle([0, 1, 2, 3]).body + cycle([4, 5, 6, 7]).body, (), ((),))).text


def oracle_of_symmetric_branches() -> None:
    """Paths that leave one variable: which is which makes no difference, how many have an edge more does."""
    one, other, longer = branches(4), branches(4, shuffled=[2, 0, 3, 1]), branches(5)
    assert spell(one).text == spell(other).text
    assert spell(one).text != spell(Component(longer.body[:-1], (), ((),))).text


@pytest.mark.parametrize("shape", ["copies", "branches", "clique"])
def property_symmetric_variables_are_not_permuted(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of n variables that are alike, all n! orders have one text; as many refinements are enough."""
    n, counted, refine = 20, list[int](), _Search.refine

    def count(self: _Search, some: Collection[int], colours: dict[int, int], changed: set[int]) -> dict[int, int]:
        counted.append(len(some))
        return refine(self, some, colours, changed)

    monkeypatch.setattr(_Search, "refine", count)
    units = {"copies": copies(n), "branches": branches(n), "clique": clique(n)}
    _least_text.cache_clear()
    spell(units[shape])
    assert len(counted) <= n


def copies(n: int) -> Component:
    """Rows without a match: of n columns each is NULL, as the first one is."""
    first, *others = [Column(id, f"v{id}", INT) for id in range(n)]
    copied: list[Factor] = [Assign(v, first) for v in others]
    return Component((rel(RELATIONS[0], [first]), *copied), (first, *others), ((),))


def branches(n: int, shuffled: list[int] | None = None) -> Component:
    """Paths of two edges, in any order, that leave the same variable."""
    root, *others = [Column(id, f"v{id}", INT) for id in range(2 * n + 1)]
    body = [[rel(RELATIONS[0], [root, others[2 * i]]), rel(RELATIONS[1], others[2 * i : 2 * i + 2])] for i in range(n)]
    return Component(tuple(f for i in shuffled or range(n) for f in body[i]), (), ((),))


def clique(n: int) -> Component:
    """Edges between any two variables, in both directions."""
    return Component(
        tuple(rel(RELATIONS[0], list(pair)) for pair in permutations([Column(i, f"v{i}", INT) for i in range(n)], 2)),
        (),
        ((),),
    )


def cycle(ids: list[int]) -> Component:
    around = [Column(id, f"v{id}", INT) for id in ids]
    return Component(
        tuple(rel(RELATIONS[0], list(pair)) for pair in zip(around, around[1:] + around[:1], strict=True)), (), ((),)
    )


def moved(unit: Component, data: st.DataObject) -> Component:
    """The same in other variables and another order."""
    old = [*VARIABLES, SUM]
    new: dict[int, Expr] = {v.id: w for v, w in zip(old, data.draw(st.permutations(old)), strict=True)}
    body = tuple(rename_factor(f, new) for f in unit.body)
    keys = (new[v.id] for v in unit.keys)
    return Component(
        tuple(data.draw(st.permutations(body))),
        tuple(data.draw(st.permutations([k for k in keys if isinstance(k, Column)]))),
        unit.lanes,
    )


def bound_by(unit: Component) -> set[Column]:
    """The variables that a unit has a value for."""
    atoms = (f for f in unit.body if isinstance(f, Rel))
    return {v for atom in atoms for _, v in atom.fields} | {f.variable for f in unit.body if isinstance(f, Assign)}


def naive(unit: Component) -> tuple[object, ...]:
    """The least of what any renaming makes of a unit."""
    core = prune(unit.body, unit.keys, ())
    used = sorted({v.id for f in core for v in variables(f)})
    texts = []
    for order in permutations(range(len(used))):
        names: dict[int, Expr] = {id: Column(n, "", INT) for id, n in zip(used, order, strict=True)}
        factors = sorted(repr(rename_factor(f, names)) for f in core)
        texts.append((factors, sorted(repr(names[v.id]) for v in unit.keys)))
    return min(texts)


def test_variables_that_differ_are_compared_with_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a chain of n relations each variable has a colour of its own from the first turn on, and needs no marks."""
    n, counted, group = 40, list[int](), canonical_form._by_key

    def count(items: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
        counted.append(1)
        return group(items)

    monkeypatch.setattr(canonical_form, "_by_key", count)
    chained = [Column(id, f"v{id}", INT) for id in range(n + 1)]
    relations = [Relation(f"r{i}", tuple(Field(f, INT) for f in "abc"), True, "csv") for i in range(n)]
    _least_text.cache_clear()
    spell(Component(tuple(rel(of, chained[i : i + 2]) for i, of in enumerate(relations)), (), ((),)))
    assert len(counted) <= n // 4
