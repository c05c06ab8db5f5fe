"""Random joins, acyclic, cyclic and of one stream with itself, under table functions, against DuckDB's rows after every
batch: over derived and declared variable orders, by group, with static tables, on several executors."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.maintain.factorised.join_graph import JoinGraph
from squallpy.testing.engines import LocalEngine, MemoryEngine, MovedEngine, PartitionedEngine, SparkEngine
from squallpy.testing.generators import DOMAINS, Case, Change, format_value, insert_missing
from tests.maintain.factorised.random_joins import joins, random_order
from tests.marks import long
from tests.steps.known_sizes import KnownMoved, KnownSizes
from tests.steps.test_random import SIZES, Weighed, run


class KnownWeighed(KnownSizes, Weighed):
    """With rows of all relations known."""


ENGINES: dict[str, Callable[[], MemoryEngine]] = {
    "optimized": Weighed,
    "plain": partial(Weighed, optimizer=False),
    "durable": LocalEngine,
    "two partitions": partial(PartitionedEngine, 2),
    "one statement a stage": partial(PartitionedEngine, 3, fusion=False),
    "four partitions, killed": partial(MovedEngine, 4),
    "known sizes": KnownWeighed,
    "known sizes, three partitions, killed": partial(KnownMoved, 3),
}
LONG = ("durable", "two partitions", "one statement a stage")  # only by `make long`
KINDS = {  # types of columns, by what reads them
    "cofactor": ("INT", "BIGINT", "DECIMAL(8,2)", "DOUBLE"),
    "ols": ("INT", "DECIMAL(8,2)", "DOUBLE"),
    "mutual_information": ("INT", "BIGINT", "VARCHAR", "DATE", "BOOLEAN"),
}


@dataclass(frozen=True, slots=True)
class Tables:
    """The streams and tables of a join's leaves: several leaves may be of one.

    Args:
        types: Of each variable, by its letter.
    """

    join: JoinGraph
    names: tuple[str, ...]
    types: dict[str, str]

    def column(self, leaf: int, letter: str) -> str:
        """Name the column of a leaf that holds a variable."""
        place = [v.name for v in self.join.leaves[leaf].variables].index(letter)
        return f"t{leaf}.c{place}"

    def first(self, letter: str) -> str:
        """Name the column of a variable in the first leaf that has it."""
        leaf = next(i for i, leaf in enumerate(self.join.leaves) if letter in {v.name for v in leaf.variables})
        return self.column(leaf, letter)

    def declarations(self) -> list[str]:
        """Declare each stream or table once."""
        declared = dict[str, str]()
        for name, leaf in zip(self.names, self.join.leaves, strict=True):
            columns = [f"c{i} {self.types[v.name]}" for i, v in enumerate(leaf.variables)]
            kind = "STREAM" if leaf.is_stream else "TABLE"
            declared.setdefault(name, f"CREATE {kind} {name} ({', '.join([*columns, 'rest INT'])});")
        return list(declared.values())

    def domains(self, name: str) -> list[list[Any]]:
        """List the values of each column of a stream or table, most of them the same, so that rows meet."""
        leaf = self.join.leaves[self.names.index(name)]
        domains = (DOMAINS[self.types[v.name]] for v in leaf.variables)
        return [*([*domain[2:3] * 15, *domain[2:4] * 5, *domain] for domain in domains), [0, 1]]


@st.composite
def tables_of(draw: st.DrawFn, join: JoinGraph, kinds: tuple[str, ...]) -> Tables:
    """Draw which leaves are of one stream, as far as their columns allow, and the types of variables."""
    alike = draw(st.booleans())
    letters = sorted({v.name for leaf in join.leaves for v in leaf.variables})
    types = {letter: "INT" if alike else draw(st.sampled_from(kinds)) for letter in letters}
    names, leaves = list[str](), list(join.leaves)
    for i, leaf in enumerate(leaves):
        twins = [j for j in range(i) if alike and len(leaves[j].variables) == len(leaf.variables)]
        twin = draw(st.sampled_from([None, *twins]))
        names.append(f"r{i}" if twin is None else names[twin])
        leaves[i] = leaf if twin is None else replace(leaf, is_stream=leaves[twin].is_stream)
    return Tables(replace(join, leaves=tuple(leaves)), tuple(names), types)


def tests_of(type: str) -> st.SearchStrategy[str]:
    """Draw a test for a column of a type; most are empty."""
    values = [f"{type} '{value}'" if type == "DATE" else format_value(value) for value in DOMAINS[type][1:4]]
    return st.sampled_from(
        [*[""] * 16, "IS NOT NULL", *(f"{op} {value}" for op in ("<>", "=", "<=") for value in values)]
    )


@st.composite
def queries(draw: st.DrawFn, tables: Tables, call: str, keys: list[str], features: list[str]) -> str:
    """Draw the query in TABLE(…), its joins in ON or in WHERE, and what is called with it."""
    leaves = range(len(tables.join.leaves))
    where = [f"{tables.column(i, v.name)} {test}" for i in leaves for v in tables.join.leaves[i].variables
             if (test := draw(tests_of(tables.types[v.name])))]  # fmt: skip
    sources, seen, in_where = list[str](), dict[str, str](), draw(st.booleans())
    for i in leaves:
        letters = [v.name for v in tables.join.leaves[i].variables]
        on = [f"{seen[letter]} = {tables.column(i, letter)}" for letter in letters if letter in seen]
        seen |= {letter: tables.column(i, letter) for letter in letters if letter not in seen or draw(st.booleans())}
        if in_where:
            where += on
        sources.append(
            f"{tables.names[i]} AS t{i}" + ("" if in_where or not i else f" ON {' AND '.join(on) or 'TRUE'}")
        )
    listed = draw(st.permutations([*features, *keys]))
    columns = ", ".join(f"{seen[letter]} AS {letter}" for letter in listed)
    conditions = " AND ".join(f"({part})" for part in where if part)
    text = f"SELECT {columns} FROM {(', ' if in_where else ' JOIN ').join(sources)}"
    text += f" WHERE {conditions}" if conditions else ""
    return call.format(f"TABLE({text})" + (f" PARTITION BY ({', '.join(keys)})" if keys else ""))


def order_text(tables: Tables, random: Random) -> str:
    """Write a random order, whose variables are named by a leaf and its column."""
    order = random_order(tables.join, random)
    variables = tuple(replace(v, name=tables.first(v.name)) for v in order.variables)
    relations = tuple(replace(relation, name=f"t{i}") for i, relation in enumerate(order.relations))
    return str(replace(order, variables=variables, relations=relations))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a join, a table function over it, and batches; rows of static tables stand in the script."""
    join = draw(joins().filter(lambda join: join.features or join.free))
    keys = [v.name for v in join.free]
    features = [v.name for v in join.features if v.name not in keys]
    if not features:
        features, keys = keys, []
    function = draw(st.sampled_from(["cofactor", "cofactor", *(KINDS if len(features) > 1 else ())]))
    tables = draw(tables_of(join, KINDS[function]))
    script, arguments = tables.declarations(), "{}"
    if function == "ols":
        arguments += f", '{draw(st.sampled_from(features))}', intercept => {draw(st.booleans())}"
        arguments += draw(st.sampled_from(["", "", ", ridge => 0", ", ridge => 0.5"]))
        arguments += draw(st.sampled_from(["", ", solver => 'cholesky'", ", solver => 'bgd'"]))
    if function == "cofactor":
        arguments += draw(st.sampled_from(["", "", ", degree => 1", ", degree => 2", ", degree => 3"]))
    if draw(st.booleans()):
        script += ["CREATE VARIABLE ORDER declared AS $$", order_text(tables, draw(st.randoms())), "$$;"]
        arguments += ", order => 'declared'"
    script.append(f"SELECT * FROM {draw(queries(tables, f'{function}({arguments})', keys, features))};")
    static = {n for n, leaf in zip(tables.names, tables.join.leaves, strict=True) if not leaf.is_stream}
    rows = {n: st.tuples(*map(st.sampled_from, tables.domains(n))) for n in dict.fromkeys(tables.names)}
    loaded = {n: draw(st.lists(some, min_size=2, max_size=5)) for n, some in rows.items()}
    for name in sorted(static):
        script += ["", f"table {name}", *(", ".join(map(format_value, row)) for row in loaded[name])]
    signs = st.sampled_from([1, 1, 1, -1])
    changes = [st.tuples(st.just(n), signs, some) for n, some in rows.items() if n not in static]
    batches: list[list[Change]] = [[(n, 1, row) for n in rows if n not in static for row in loaded[n]]]
    batches += draw(st.lists(st.lists(st.one_of(changes), max_size=12), max_size=4)) if changes else [[]]
    insert_missing(batches, draw(st.sampled_from([True, True, False])))
    return Case("\n".join(script), batches)


@pytest.mark.xdist_group("random models")
@pytest.mark.parametrize("engine", [long(name) if name in LONG else name for name in ENGINES])
@settings(max_examples=settings().max_examples // 2, suppress_health_check=[HealthCheck.too_slow])
@given(case=cases(), size=SIZES)
def oracle_random_models(engine: str, case: Case, size: int | None) -> None:
    run(case.rebatch(size) if size else case, ENGINES[engine]())


@pytest.mark.spark
@settings(
    max_examples=max(1, settings().max_examples // 40),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(case=cases(), size=st.sampled_from([7, 1000]))
def oracle_random_models_on_spark(cluster: Any, case: Case, size: int) -> None:
    run(case.rebatch(size), SparkEngine(cluster, 3))
