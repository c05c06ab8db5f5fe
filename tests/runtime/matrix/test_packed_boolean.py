"""What steps do with packed factors equals what numpy does with the truth values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from squallpy.base.semirings import BOOLEAN
from squallpy.maintain.matrix.compile_triggers import compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.meta_information import Properties
from squallpy.maintain.matrix.parser import read_program
from squallpy.runtime.kernels.matrix import boolean
from squallpy.runtime.matrix.maintained_program import MaintainedProgram
from squallpy.runtime.matrix.packed_boolean import PackedMatrix, stack

Truth = np.ndarray
SIZES = st.sampled_from([1, 2, 3, 63, 64, 65, 130])


def _layouts(values: Truth) -> list[PackedMatrix]:
    packed = PackedMatrix.of(values)
    rows, cols = values.shape
    return [packed, packed.T.T, PackedMatrix(packed.columns, rows), PackedMatrix(packed.rows, cols, True)]


def _truth(packed: PackedMatrix) -> Truth:
    return boolean.unpack(packed.rows, packed.shape[1])


@given(n=SIZES, k=SIZES, m=SIZES, seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def property_packed_equals_truth(n: int, k: int, m: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b, c = (random.random(shape) < random.choice([0.02, 0.3]) for shape in ((n, k), (k, m), (n, k)))
    for x in _layouts(a):
        assert x.shape == (n, k) and np.array_equal(_truth(x.T), a.T)
        assert np.array_equal(x.occupied(), a.any(axis=1)) and np.array_equal(x.T.occupied(), a.any(axis=0))
        for y in _layouts(b):
            assert np.array_equal(_truth(x @ y), a.astype(int) @ b > 0)
        for z in _layouts(c):
            assert np.array_equal(_truth(x | z), a | c)
            assert np.array_equal(_truth(stack([x, z])), np.hstack([a, c]))


@pytest.mark.parametrize("symmetrical", [False, True])
def differential_reachability(symmetrical: bool) -> None:
    """Edges that come and come again, dense and sparse, in views that are symmetric and that are not."""
    n, random = 150, np.random.default_rng(1)
    G = np.zeros((n, n), bool)
    text = "R := iterate[4](eye(n))(acc => G * acc + eye(n))"
    source = MatrixInput(Name("G", Size.of("n"), Size.of("n")), Properties(symmetric=symmetrical))
    live = MaintainedProgram(
        compile_program(read_program(text, [source], BOOLEAN), ["G"], {"n": n}).maintained, {"G": G}, "incr"
    )
    for _ in range(60):
        i, j = random.integers(0, n, 2)
        u, v = np.zeros((n, 2), bool), np.zeros((2, n), bool)
        u[i, 0] = v[0, j] = True
        u[j, 1] = v[1, i] = symmetrical
        for _ in range(2):
            live.update("G", u, v)
        G = G | (u.astype(int) @ v > 0)
        wanted = np.linalg.matrix_power(np.minimum(G + np.eye(n, dtype=np.int64), 1), 4) > 0
        assert np.array_equal(live.read("R"), wanted)
