"""How often the compiler does the steps whose number grows fastest with the inputs of a join."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.logical.expressions import Rewriter
from squallpy.maintain.relational import materialise
from squallpy.optimizer.program import read_kept_joins
from squallpy.physical.access_paths import _StatementSteps
from squallpy.physical.distribute import distributed_program
from squallpy.physical.distribute.distributed_program import Distribution, Placement, distribute
from squallpy.physical.distribute.location_tags import COLUMNS, PlacementError, _Properties
from squallpy.physical.distribute.single_transformer import SingleTransformer, Transfer
from squallpy.physical.planner import place
from squallpy.program import components
from squallpy.program.trigger_program import TriggerProgram


def program(select: str, streams: int) -> TriggerProgram:
    """Compile a query of streams t0, t1, …"""
    lines = (f"CREATE STREAM t{i} (k INT, v{i} INT) USING csv OPTIONS (path '-');\n" for i in range(streams))
    (query,) = compile_script("".join(lines) + select + ";", "q.sql", lambda relation: ()).queries
    return to_program(query).program


def joins(kind: str, count: int) -> str:
    return "t0 " + " ".join(f"{kind} JOIN t{i} USING (k)" for i in range(1, count + 1))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of what is called."""
    found = Counter[str]()

    def count(owner: object, name: str) -> None:
        inner: Callable[..., Any] = getattr(owner, name)

        def counting(*arguments: Any, **named: Any) -> Any:
            found[name] += 1
            return inner(*arguments, **named)

        monkeypatch.setattr(owner, name, counting)

    count(_StatementSteps, "_choose_path")
    count(distributed_program, "simplify_moves")
    count(Rewriter, "__call__")
    count(components, "_covers")
    count(materialise, "split")
    count(read_kept_joins._HeldJoins, "parts")
    count(SingleTransformer, "_move")
    count(SingleTransformer, "add")
    count(_Properties, "_set_properties")
    return found


def test_a_column_of_all_inputs_ranks_no_lookup_anew(calls: Counter[str]) -> None:
    """COALESCE of n columns reads what each of n lookups finds; its cost depends on none of the others."""
    n = 20
    columns = ", ".join(f"v{i}" for i in range(n + 1))
    coalesced = program(f"SELECT COALESCE({columns}) AS v FROM {joins('FULL', n)}", n + 1)
    statements = [s for trigger in coalesced.triggers for s in trigger.statements]
    place(coalesced, 1, {})
    assert calls["_choose_path"] <= 2 * sum(len(s.refs) for s in statements)


def test_placements_that_move_views_are_left_at_the_first_one(calls: Counter[str]) -> None:
    """One view by the key, others by their values: each of n statements would have to move n − 1 views."""
    n = 20
    found = program(f"SELECT * FROM {joins('', n)}", n + 1)
    places: dict[str, Placement] = {view.name: (min(i, 1),) for i, view in enumerate(found.stored)}
    with pytest.raises(PlacementError):
        Distribution(found).blocks(places, views_stay=True)
    assert calls["simplify_moves"] <= 4


def test_placements_that_move_more_are_left_at_the_first_statement_too_many(calls: Counter[str]) -> None:
    """On a grid each product of two inputs is sent on to the next: n² moves, where by the key there are n."""
    n = 20
    found = program(f"SELECT * FROM {joins('', n)}", n + 1)
    by_key: dict[str, Placement] = {view.name: (0,) for view in found.stored}
    moves = sum(isinstance(step, Transfer) for block in distribute(found, by_key) for step in block.steps)
    assert moves == n + 1
    before = calls["_move"]
    with pytest.raises(PlacementError):
        distribute(found, dict.fromkeys(by_key, COLUMNS), most_moves=moves)
    assert calls["_move"] - before <= 2 * moves


def chain(count: int) -> TriggerProgram:
    """Compile a chain of LEFT JOINs, each by a key of its own."""
    joined = " ".join(f"LEFT JOIN t{i} ON v{i - 1} = t{i}.k" for i in range(1, count + 1))
    return program(f"SELECT v0 FROM t0 {joined}", count + 1)


def test_placements_by_which_a_statement_waits_again_and_again_are_left_at_it(calls: Counter[str]) -> None:
    """Each view by its own key: a change goes from one to the next, in n rounds, where copies are read in one."""
    found = chain(20)
    places: dict[str, Placement] = {view.name: (0,) for view in found.stored}
    with pytest.raises(PlacementError):
        Distribution(found).blocks(places, views_stay=True, most_rounds=4)
    assert calls["add"] <= 4


def test_a_search_costs_what_the_cheapest_placements_take(calls: Counter[str]) -> None:
    """Of a chain by n keys the rule's placements have statements of n exchanges, each rewritten in n² steps."""
    found = chain(40)
    read = sum(len(statement.refs) for trigger in found.triggers for statement in trigger.statements)
    place(found, 2, {})
    assert calls["_set_properties"] <= 20 * read


@pytest.mark.parametrize("n", [10, 20])
def test_projections_of_many_columns_are_looked_through_once(calls: Counter[str], n: int) -> None:
    """Each of n operators has n columns; rules rewrite the expressions that are more than a column, a few each."""
    program(f"SELECT * FROM {joins('FULL', n)}", n + 1)
    assert calls["__call__"] <= 120 * n


@pytest.mark.parametrize("aggregate", ["{}", "SUM({})"])
@pytest.mark.parametrize("n", [10, 20])
def test_filters_are_tried_on_the_views_that_bind_what_they_read(calls: Counter[str], n: int, aggregate: str) -> None:
    """A delta is joined with n views; of n filters each reads variables of one or two of them."""
    read = ", ".join(aggregate.format(f"v{i}") for i in range(n + 1))
    program(f"SELECT k, {read} FROM {joins('FULL', n)}{' GROUP BY k' if 'SUM' in aggregate else ''}", n + 1)
    assert calls["_covers"] <= 10 * n


@pytest.mark.parametrize("kind", ["", "LEFT"])
def test_views_that_will_be_too_many_are_not_made_first(calls: Counter[str], kind: str) -> None:
    """A chain of n relations by n keys has n²/2 joins of neighbours; its relations are kept one by one."""
    n = 20
    joined = " ".join(f"{kind} JOIN t{i} ON v{i - 1} = t{i}.k" for i in range(1, n + 1))
    found = program(f"SELECT v0 FROM t0 {joined}", n + 1)
    assert calls["split"] <= 1.2 * sum(len(trigger.statements) for trigger in found.triggers)


def test_statements_are_compared_with_the_joins_of_what_they_read(calls: Counter[str]) -> None:
    """Of the views that hold joins, some per join of a chain, a statement could read those of its relations."""
    n = 20
    joined = " ".join(f"FULL JOIN t{i} ON v{i - 1} = t{i}.k" for i in range(1, n + 1))
    program(f"SELECT v0 FROM t0 {joined}", n + 1)
    assert 0 < calls["parts"] <= 40 * n


def test_full_joins_of_integers_of_two_types_are_by_one_key() -> None:
    """An INT equals the BIGINT of its value: a cast in a COALESCE is none of the key's."""
    n = 10
    types = ["INT" if i % 2 else "BIGINT" for i in range(n + 1)]
    typed = "".join(f"CREATE STREAM t{i} (k {type}) USING csv OPTIONS (path '-');\n" for i, type in enumerate(types))
    texts = (f"{text}SELECT k FROM {joins('FULL', n)};" for text in (typed, typed.replace("BIGINT", "INT")))
    mixed, alike = (to_program(*compile_script(text, "q.sql", lambda _: ()).queries).program for text in texts)
    assert len(mixed.views) <= len(alike.views) + 2 * n


COMPUTED_KEYS = {"of the first column": "COALESCE({columns}) + 1", "of any input": "COALESCE({keys})"}


@pytest.mark.parametrize("name", COMPUTED_KEYS)
def test_full_joins_on_one_expression_are_by_one_key(name: str) -> None:
    """An input's expression is a column of it; in the rows of many it is that of the first column there is."""
    n = 10
    joined, columns = "t0", ["t0.k"]
    for i in range(1, n + 1):
        keys = [f"{column} + 1" for column in columns]
        left = COMPUTED_KEYS[name].format(columns=", ".join(columns), keys=", ".join(keys)) if i > 1 else keys[0]
        joined += f" FULL JOIN t{i} ON {left} = t{i}.k + 1"
        columns.append(f"t{i}.k")
    read = ", ".join(f"v{i}" for i in range(n + 1))
    computed, plain = (
        program(f"SELECT {read} FROM {joined}", n + 1),
        program(f"SELECT {read} FROM {joins('FULL', n)}", n + 1),
    )
    assert len(computed.views) <= len(plain.views)


FULL_JOINS = {
    "neighbours' keys": "t{0}.k = t{1}.k",
    "neighbours' expressions": "t{0}.k + 1 = t{1}.k + 1",
    "different keys": "t{0}.v{0} = t{1}.k",
    "the first key": "t0.k = t{1}.k",
}


@pytest.mark.parametrize("name", FULL_JOINS)
def test_full_joins_on_any_keys_are_maintained_by_a_few_statements_each(name: str) -> None:
    """Rows that end at any join go on with NULLs: multiplied out, each of n joins has the rows of all before it."""

    def statements(count: int) -> int:
        on = (f"FULL JOIN t{i} ON {FULL_JOINS[name].format(i - 1, i)}" for i in range(1, count + 1))
        found = program(f"SELECT COUNT(*) FROM t0 {' '.join(on)}", count + 1)
        return sum(len(trigger.statements) for trigger in found.triggers)

    assert statements(20) - statements(10) <= 22 * 10
