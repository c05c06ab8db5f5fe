"""Which steps of a statement are words of a program, and what those do."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.base.keys import NULL
from squallpy.base.rings import Payload, Ring
from squallpy.base.types import BIGINT, BOOLEAN, DOUBLE, VARCHAR
from squallpy.logical.expressions import COMPARISONS, Call, Column, Literal, conjunction
from squallpy.physical.plan import FilterStep, Let, Lookup, Update
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import Delta
from squallpy.runtime.triggers.statement_assembly import StepProgram, assemble
from squallpy.runtime.triggers.statement_execution import RunnableStatement

A, B, C = (Column(i, name, BIGINT) for i, name in enumerate("abc"))
COUNT = Payload((Ring.COUNT,))
PAYLOADS = {"Δ": COUNT, "m": COUNT, "q": COUNT}


def call(name: str, *args: Call | Column | Literal) -> Call:
    return Call(name, args, BOOLEAN, True)


def update(
    *path: Let | Lookup | FilterStep, keys: tuple[Column, ...] = (A, B), lanes: tuple[tuple[Any, ...]] = ((),)
) -> Update:
    return Update("q", "Δ", (A, B), (0,), path, keys, lanes)


def matrix(rows: Sequence[tuple[int, ...]], width: int) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(len(rows), width)


def answer(
    statement: RunnableStatement, keys: NDArray[np.int64], words: NDArray[np.int64], **pools: Pool
) -> dict[tuple[int, ...], int]:
    target = Pool(len(statement.update.keys), COUNT)
    statement.run(Delta("Δ", np.array(keys), np.array(words)), pools | {"q": target}, Dictionary(), None)
    return {tuple(k): n for k, (n,) in zip(target.keys.tolist(), target.words.tolist(), strict=True)}


@pytest.mark.parametrize(
    ("step", "inside"),
    [
        (FilterStep(call("<", A, B)), True),
        (FilterStep(call(">=", Literal(3, BIGINT), A)), True),
        (FilterStep(conjunction((call("=", A, B), call("<>", A, Literal(1, BIGINT))))), True),
        (FilterStep(call("or", call("=", A, B), call("<>", A, Literal(1, BIGINT)))), False),
        (FilterStep(call("<", Column(3, "x", DOUBLE), Column(4, "y", DOUBLE))), False),  # their words are not in order
        (FilterStep(call("<>", Column(3, "x", VARCHAR), Column(4, "y", VARCHAR))), True),
        (FilterStep(call("<", Column(3, "x", VARCHAR), Column(4, "y", VARCHAR))), False),
        (Let(C, Literal(None, BIGINT)), True),
        (Let(C, Call("+", (A, B), BIGINT, True)), False),
    ],
)
def oracle_what_is_a_program(step: FilterStep, inside: bool) -> None:
    known = (A, B, Column(3, "x", DOUBLE), Column(4, "y", DOUBLE))
    code = assemble(Update("q", "Δ", known, (0,), (step,), (A,), ((),)), PAYLOADS)
    assert [isinstance(part, StepProgram) for part in code.parts] == [inside]


def oracle_a_renamed_column_takes_no_step() -> None:
    code = assemble(update(Let(C, A), keys=(C,)), PAYLOADS)
    assert code.parts == () and code.registers[C.id] == code.registers[A.id]


KEY = st.sampled_from([NULL, -1, 0, 1, 2])


@given(st.lists(st.tuples(KEY, KEY), max_size=50), st.sampled_from(COMPARISONS), st.booleans())
def property_a_comparison_is_that_of_sql(rows: list[tuple[int, int]], name: str, constant: bool) -> None:
    statement = RunnableStatement(update(FilterStep(call(name, A, Literal(1, BIGINT) if constant else B))), PAYLOADS)
    compare = {"=": "__eq__", "<>": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}[name]
    expected = {}
    for a, b in rows:
        other = 1 if constant else b
        if NULL not in (a, other) and getattr(a, compare)(other):
            expected[a, b] = expected.get((a, b), 0) + 1
    assert answer(statement, matrix(rows, 2), np.ones((len(rows), 1), np.int64)) == expected


@given(st.lists(st.tuples(KEY, KEY, st.integers(-2, 2))), st.lists(st.tuples(KEY, KEY, st.integers(-2, 2))))
def property_lookups_join(rows: list[tuple[int, int, int]], records: list[tuple[int, int, int]]) -> None:
    """Probe, slice and scan of the same records, of which each row finds those that it should."""
    pool = Pool(2, COUNT, slices=((0,),))
    pool.upsert(matrix([r[:2] for r in records], 2), matrix([r[2:] for r in records], 1))
    held = {tuple(k): n for k, (n,) in zip(pool.keys.tolist(), pool.words.tolist(), strict=True)}
    live = frozenset((A.id, B.id, C.id))
    looks: dict[Lookup, Callable[[int, int, int, int], bool]] = {
        Lookup("m", "probe", -1, ((0, A), (1, B)), (), (0,), live): lambda a, b, x, y: (a, b) == (x, y),
        Lookup("m", "slice", 0, ((0, A),), ((1, C),), (0,), live): lambda a, b, x, y: a == x,
        Lookup("m", "scan", -1, (), ((1, C),), (0,), live): lambda a, b, x, y: True,
    }
    for look, agree in looks.items():
        keys = (A, B, C) if look.binds else (A, B)
        expected, pairs = {}, 0
        for a, b, n in rows:
            for (x, y), m in held.items():
                if agree(a, b, x, y):
                    pairs += 1
                    key = (a, b, y)[: len(keys)]
                    expected[key] = expected.get(key, 0) + n * m
        statement = RunnableStatement(update(look, keys=keys), PAYLOADS)
        found = answer(statement, matrix([r[:2] for r in rows], 2), matrix([r[2:] for r in rows], 1), m=pool)
        assert found == {key: n for key, n in expected.items() if n}
        assert statement.work == 2 * pairs  # each is found, and added
