"""The order of a trigger's statements, and how many there are of a self-join."""

from collections import Counter
from collections.abc import Callable
from itertools import chain as chain_of

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import MOST_STATEMENTS, Settings
from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.maintain.relational.materialise import materialise
from squallpy.optimizer.program.schedule_statements import schedule
from squallpy.program.explain_text import program_text
from squallpy.program.trigger_program import Trigger, TriggerProgram
from tests.maintain.test_trigger_program import program

R = "CREATE STREAM r (a INT, b INT, c INT) USING csv OPTIONS (path 'r');"


def self_join(n: int, *conditions: str) -> str:
    return f"SELECT COUNT(*) FROM {', '.join(f'r AS t{i}' for i in range(n))} WHERE {' AND '.join(conditions)}"


def on_key(n: int) -> str:
    return self_join(n, *(f"t{i}.a = t{i + 1}.a" for i in range(n - 1)))


def chain(n: int) -> str:
    return self_join(n, *(f"t{i}.b = t{i + 1}.a" for i in range(n - 1)))


def ring(n: int) -> str:
    return self_join(n, *(f"t{i}.b = t{(i + 1) % n}.a" for i in range(n)))


def star(n: int) -> str:
    return self_join(n, *(f"t0.{'abc'[i % 3]} = t{i}.a" for i in range(1, n)))


def filtered(n: int) -> str:
    return f"{on_key(n)} AND {' AND '.join(f't{i}.c > {i}' for i in range(n))}"


def statements(compiled: TriggerProgram) -> int:
    return sum(len(trigger.statements) for trigger in compiled.triggers)


def check_order(trigger: Trigger) -> None:
    """Each statement reads views as it says, and partial products that are there."""
    updates: dict[str, list[int]] = {}
    for at, statement in enumerate(trigger.statements):
        updates.setdefault(statement.target, []).append(at)
    partial = {s.target for s in trigger.statements if s.partial}
    for at, statement in enumerate(trigger.statements):
        for ref in statement.refs:
            if ref.name in updates and not ref.row:
                if ref.is_after or ref.name in partial:
                    assert at > max(updates[ref.name])
                else:
                    assert at < min(updates[ref.name])


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("sql", [on_key, filtered, chain, ring, star])
def test_statements_read_views_as_they_say(sql: Callable[[int], str], n: int) -> None:
    compiled = program(sql(n), R)
    assert compiled.triggers
    for trigger in compiled.triggers:
        check_order(trigger)


@pytest.mark.parametrize("sql", [on_key, filtered])
@pytest.mark.parametrize("n", [2, 3, 7, 20])
def test_copies_on_one_key_make_three_statements_each_at_most(sql: Callable[[int], str], n: int) -> None:
    assert statements(program(sql(n), R)) <= 3 * n


def test_sixty_four_copies_on_one_key_compile() -> None:
    assert statements(program(on_key(64), R)) <= 3 * 64


def test_what_two_versions_share_a_view_of_is_expanded() -> None:
    """Of a star with three arms: when the second changes, the centre and another arm are of different versions."""
    (trigger,) = program(star(4), R).triggers
    assert sum(s.target == "Q" for s in trigger.statements) == 5


def test_partial_products_alike_are_one() -> None:
    text = program_text(program(chain(6), R))
    made = [line.split(":=", 1)[1] for line in text.splitlines() if line.strip().startswith("P") and ":= Sum" in line]
    assert len(made) == len(set(made)) > 1


@pytest.mark.parametrize(("sql", "n"), [(chain, 12), (ring, 5), (star, 5)])
def test_each_statement_is_kept_whole_or_in_halves(sql: Callable[[int], str], n: int) -> None:
    (query,) = compile_script(f"{R} {sql(n)};", "q.sql", lambda relation: ()).queries
    given = materialise(to_program(query).lowered)
    assert joins(schedule(given)) == joins(given)


def joins(compiled: TriggerProgram) -> Counter[tuple[str, tuple[str, ...]]]:
    """Count the statements by their target and what they join, partial products multiplied out."""
    found = Counter[tuple[str, tuple[str, ...]]]()
    for trigger in compiled.triggers:
        partial = dict[str, tuple[str, ...]]()
        for statement in trigger.statements:
            read = (partial.get(ref.name, (f"{'NEW ' * ref.is_after}{ref.name}",)) for ref in statement.refs)
            names = tuple(sorted(chain_of.from_iterable(read)))
            if statement.partial:
                partial[statement.target] = names
            else:
                found[statement.target, names] += 1
    return found


def test_too_many_statements_are_refused_with_their_number() -> None:
    (query,) = compile_script(f"{R} {chain(6)};", "q.sql", lambda relation: ()).queries
    with pytest.raises(SquallError, match=r"SQ3001 the query needs at least \d+ statements .* more than 10,"):
        to_program(query, settings=Settings(statements=10))
    assert statements(to_program(query).program) < MOST_STATEMENTS
