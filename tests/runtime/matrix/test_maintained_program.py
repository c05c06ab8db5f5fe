"""Programs kept fresh equal programs evaluated as they are written, after every update."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.base.semirings import ARITHMETIC, COUNTING, MAX_PLUS, MIN_PLUS, Semiring
from squallpy.maintain.matrix.compile_triggers import STRATEGIES, Options, compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.drift_probe import write_probe
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program
from squallpy.runtime.matrix.algebra import product, unit_columns
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.drift import CHECK, DRIFT
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.testing.matrix_checks import INPUTS, RINGS, entries, naive, programs

LIMIT = 2**40  # beyond it, what a random program computes says little


def _same(found: np.ndarray, wanted: np.ndarray, ring: Semiring) -> None:
    if ring is ARITHMETIC:
        scale = max(1.0, float(np.abs(wanted).max(initial=0.0)))
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-9 * scale)
    else:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("ring", RINGS, ids=str)
@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def property_live_equals_naive(ring: Semiring, data: st.DataObject) -> None:
    program = data.draw(programs(ring))
    sizes = {"n": data.draw(st.integers(1, 5)), "m": data.draw(st.integers(1, 4))}
    options = Options(strategy=data.draw(st.sampled_from(STRATEGIES)))
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    values = {i.name.name: entries(random, i.name.rows.at(sizes), i.name.cols.at(sizes), ring) for i in INPUTS}
    compiled = compile_program(program, list(values), sizes, options)
    with np.errstate(all="ignore"):
        first = naive(program, values, sizes)
        if ring in (ARITHMETIC, COUNTING) and not all(np.abs(v).max(initial=0) < LIMIT for v in first.values()):
            return
        live = MaintainedProgram(compiled.maintained, values, compiled.options.strategy)
        for _ in range(3):
            name = data.draw(st.sampled_from(list(values)))
            rows, cols = values[name].shape
            rank = data.draw(st.integers(1, min(2, rows)))
            u, v = entries(random, rows, rank, ring), entries(random, rank, cols, ring)
            live.update(name, u, v)
            values[name] = ring.add(values[name], product(u, v, ring))
            wanted = naive(program, values, sizes)
            if ring in (ARITHMETIC, COUNTING) and not all(np.abs(w).max(initial=0) < LIMIT for w in wanted.values()):
                return
            for output in program.outputs:
                _same(live.read(output), wanted[output], ring)


@pytest.mark.parametrize("ring", RINGS, ids=str)
@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def property_growing_equals_naive(ring: Semiring, data: st.DataObject) -> None:
    program = data.draw(programs(ring))
    sizes = {"n": data.draw(st.integers(1, 4)), "m": data.draw(st.integers(1, 4))}
    random = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    values = {i.name.name: entries(random, i.name.rows.at(sizes), i.name.cols.at(sizes), ring) for i in INPUTS}
    compiled = compile_program(program, list(values), sizes, Options(strategy="incr"), growing=("n", "m"))
    with np.errstate(all="ignore"):
        live = MaintainedProgram(compiled.maintained, values, "incr")
        for _ in range(3):
            sizes = {name: size + data.draw(st.integers(0, 2)) for name, size in sizes.items()}
            live.grow(sizes)
            for i in INPUTS:
                old = values[i.name.name]
                new = np.full((i.name.rows.at(sizes), i.name.cols.at(sizes)), ring.zero, ring.dtype)
                new[: old.shape[0], : old.shape[1]] = old
                u, v = entries(random, new.shape[0], 1, ring), entries(random, 1, new.shape[1], ring)
                live.update(i.name.name, u, v)
                values[i.name.name] = ring.add(new, product(u, v, ring))
            wanted = naive(program, values, sizes)
            if ring in (ARITHMETIC, COUNTING) and not all(np.abs(w).max(initial=0) < LIMIT for w in wanted.values()):
                return
            for output in program.outputs:
                _same(live.read(output), wanted[output], ring)


def test_views_that_have_drifted_are_made_anew() -> None:
    """Kept constants have no definition to drift from; a view that is off is seen at the next look, and mended."""
    program = read_program("R := A * ones(n, m) + B; Q := inv(A' * A + eye(n))", INPUTS)
    compiled = compile_program(program, ["A", "B"], {"n": 4, "m": 3}, Options(strategy="incr"), growing=("m",))
    random = np.random.default_rng(5)
    values = {i.name.name: entries(random, *SHAPES_OF[i.name.name], ARITHMETIC) for i in INPUTS}
    live = MaintainedProgram(compiled.maintained, values, "incr")
    assert "ones(n, m)" in {name.name for name in compiled.maintained.kept}
    for at in range(2 * CHECK):
        u, v = entries(random, 4, 1, ARITHMETIC), entries(random, 1, 4, ARITHMETIC)
        live.update("A", u, v)
        live.update("A", u, -v)
        if at == 3:
            live.views["R"].add_at(np.array([1]), np.array([2]), np.array([1e-3]))  # what rounding would do in years
            assert live.drift() > DRIFT
    assert (live.counts.refreshed, live.counts.drift > DRIFT) == (1, True)
    assert live.drift() < DRIFT
    for name, wanted in naive(program, values, {"n": 4, "m": 3}).items():
        _same(live.read(name), wanted, ARITHMETIC)


SHAPES_OF = {"A": (4, 4), "B": (4, 3), "C": (3, 4)}


def test_a_look_is_as_long_as_the_program() -> None:
    """Each step reads the one before it twice; followed from each of its readers it would be read 2⁴⁰ times."""
    text = "r := iterate[40](fill(n, 1, 1))(r => let x := A * r in x + A * ones(n, n) * x)"
    program = read_program(text, [MatrixInput(Name("A", Size.of("n"), Size.of("n")))])
    assert len(write_probe(compile_program(program, [], {"n": 4}).maintained).steps) < 40 * 8


def test_views_of_triggers_that_never_pay_are_not_kept() -> None:
    """Small products are faster than the steps of a trigger; when n has grown they are not, and views are kept."""
    program = read_program("P := A ^ 4", [MatrixInput(Name("A", Size.of("n"), Size.of("n")))])
    random = np.random.default_rng(2)
    values = {"A": random.standard_normal((8, 8)) / 8}
    live = MaintainedProgram(compile_program(program, ["A"], {"n": 8}, growing=("n",)).maintained, values)
    assert ("P" in live.views, "x0" in live.views, live.views.nbytes) == (True, False, 2 * 8 * 8 * 8)
    u, v = unit_columns(8, np.array([3]), ARITHMETIC), random.standard_normal((1, 8)) / 8
    live.update("A", u, v)
    assert (live.counts.updates, live.counts.reevaluated) == (1, 1)
    _same(live.read("P"), np.linalg.matrix_power(values["A"] + u @ v, 4), ARITHMETIC)
    live.grow({"n": 400})
    assert ("x0" in live.views, live.counts.reevaluated) == (True, 2)
    u, v = unit_columns(400, np.array([399]), ARITHMETIC), random.standard_normal((1, 400)) / 400
    live.update("A", u, v)
    assert (live.counts.updates, live.counts.reevaluated) == (2, 2)
    _same(live.read("P"), np.linalg.matrix_power(live.read("A"), 4), ARITHMETIC)


@pytest.mark.parametrize("ring", [ARITHMETIC, COUNTING], ids=str)
def test_constants_that_grow_are_symmetric_together_only(ring: Semiring) -> None:
    """ones(n, 1) * ones(1, n) is symmetric, but not while one of them has grown and the other has not."""
    program = read_program("R := iterate[2](A)(i => rowSums(i) * ones(1, n))", INPUTS, ring)
    compiled = compile_program(program, ["A"], {"n": 1, "m": 1}, Options(strategy="incr"), growing=("n",))
    values = {i.name.name: np.ones((1, 1), ring.dtype) for i in INPUTS}
    live = MaintainedProgram(compiled.maintained, values, "incr")
    for size in (2, 3, 5):
        live.grow({"n": size, "m": 1})
        values = {i.name.name: live.read(i.name.name) for i in INPUTS}
        _same(live.read("R"), naive(program, values, {"n": size, "m": 1})["R"], ring)


def test_an_update_of_rank_0_changes_nothing() -> None:
    program = read_program("P := A * A", [MatrixInput(Name("A", Size.of("n"), Size.of("n")))])
    live = MaintainedProgram(compile_program(program, ["A"], {"n": 8}).maintained, {"A": np.eye(8)})
    live.update("A", np.zeros((8, 0)), np.zeros((0, 8)))
    assert (live.counts.updates, live.counts.reevaluated) == (1, 0)
    _same(live.read("P"), np.eye(8), ARITHMETIC)


@pytest.mark.parametrize("ring", [MIN_PLUS, MAX_PLUS], ids=str)
def differential_distances(ring: Semiring) -> None:
    """Edges that make many ways better, few and none: rows that an update cannot better are left out of it."""
    n, random, sign = 120, np.random.default_rng(4), 1.0 if ring is MIN_PLUS else -1.0
    G = np.where(random.random((n, n)) < 0.1, sign * random.integers(1, 100, (n, n)), ring.zero)
    source = [MatrixInput(Name("G", Size.of("n"), Size.of("n")))]
    program = read_program("R := iterate[3](eye(n))(acc => G * acc + eye(n)); S := G * G", source, ring)
    live = MaintainedProgram(compile_program(program, ["G"], {"n": n}).maintained, {"G": G}, "incr")
    for at in range(40):
        rows, cols = random.integers(0, n, (2, 3))
        values = sign * random.integers(1, 1 + 100 // (1 + at % 10), 3).astype(float)
        live.add({"G": Cells(rows, cols, values)})
        ring.add.at(G, (rows, cols), values)
        for name, wanted in naive(program, {"G": G}, {"n": n}).items():
            _same(live.read(name), wanted, ring)
