"""Random joins, valid variable orders of them, and rows."""

from random import Random

from hypothesis import strategies as st

from squallpy.base.types import INT
from squallpy.logical.expressions import Column
from squallpy.maintain.factorised.join_graph import JoinGraph, Leaf
from squallpy.maintain.factorised.variable_order import NO_PARENT, Schema, Variable, VariableOrder

Rows = dict[str, dict[tuple[int, ...], int]]
"""Of each leaf: tuples with their multiplicities."""


def variables(names: str) -> tuple[Column, ...]:
    """Make a variable of each letter; equal letters are equal variables."""
    return tuple(Column(ord(name), name, INT) for name in names)


def graph(features: str = "", free: str = "", tables: str = "", **leaves: str) -> JoinGraph:
    """Make a join of relations as R="ABC", streams but for those that are named in `tables`."""
    made = (Leaf(name, variables(over), name not in tables) for name, over in leaves.items())
    return JoinGraph(tuple(made), variables(features), variables(free))


def _leaf(draw: st.DrawFn, name: str, over: list[str]) -> Leaf:
    key = over[: draw(st.integers(0, len(over)))]
    return Leaf(name, variables("".join(over)), draw(st.booleans()), variables("".join(key)))


@st.composite
def joins(draw: st.DrawFn) -> JoinGraph:
    """Draw a join, acyclic or not, connected or not."""
    sets = draw(st.lists(st.sets(st.sampled_from("ABCDEF"), max_size=4), min_size=1, max_size=5))
    leaves = tuple(_leaf(draw, f"R{i}", draw(st.permutations(sorted(s)))) for i, s in enumerate(sets))
    known = sorted({v.name for leaf in leaves for v in leaf.variables})
    features = draw(st.permutations(known))[: draw(st.integers(0, len(known)))]
    free = draw(st.permutations(known))[: draw(st.integers(0, min(2, len(known))))]
    return JoinGraph(leaves, variables("".join(features)), variables("".join(free)))


def random_order(join: JoinGraph, random: Random) -> VariableOrder:
    """Make a valid order that may be worse than need be: unconnected parts may be below one variable."""
    made: dict[Column, int] = {}
    ordered: list[Variable] = []

    def grow(schemas: list[frozenset[Column]], parent: int) -> None:
        split: list[list[frozenset[Column]]] = []
        for schema in filter(None, schemas):
            joined = [part for part in split if any(schema & other for other in part) or random.random() < 0.2]
            split = [part for part in split if part not in joined] + [[schema, *(s for part in joined for s in part)]]
        for part in split:
            top = random.choice(sorted(frozenset().union(*part), key=lambda v: v.id))
            made[top] = len(ordered)
            ordered.append(Variable(top.name, "int", parent))
            grow([schema - {top} for schema in part], made[top])

    grow([frozenset(leaf.variables) for leaf in join.leaves], NO_PARENT)
    relations = (Schema(leaf.name, tuple(made[v] for v in leaf.variables)) for leaf in join.leaves)
    return VariableOrder(tuple(ordered), tuple(relations))


@st.composite
def rows(draw: st.DrawFn, join: JoinGraph) -> Rows:
    """Draw a few rows for each leaf, some of them deleted more often than inserted."""
    value, count = st.integers(-1, 2), st.integers(-2, 3)
    return {
        leaf.name: draw(st.dictionaries(st.tuples(*[value] * len(leaf.variables)), count, max_size=6))
        for leaf in join.leaves
    }
