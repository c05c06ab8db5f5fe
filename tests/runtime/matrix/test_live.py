"""Programs kept fresh equal programs evaluated as they are written, after every update."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squallpy.base.semirings import ARITHMETIC, COUNTING, Semiring
from squallpy.maintain.matrix.compile import STRATEGIES, Options, compile_program
from squallpy.runtime.matrix.algebra import product
from squallpy.runtime.matrix.live import Live
from squallpy.testing.matrices import INPUTS, RINGS, entries, naive, programs

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
        live = Live(compiled.maintained, values, compiled.options.strategy)
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
        live = Live(compiled.maintained, values, "incr")
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
