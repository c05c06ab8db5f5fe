"""Matrices survive packing, and take the bytes that their columns' ranges need."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from squallpy.runtime.kernels.column_packing import packed, unpacked

WORDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300) | st.sampled_from([0, -1, 2**63 - 1, -(2**63)])


@st.composite
def matrices(draw: Callable[..., Any]) -> NDArray[np.int64] | None:
    rows, columns = draw(st.integers(0, 40)), draw(st.integers(0, 5))
    near = [draw(st.none() | WORDS) for _ in range(columns)]  # None: a column of anything
    cells = [[draw(WORDS) if near[c] is None else near[c] for c in range(columns)] for _ in range(rows)]
    return np.array(cells, np.int64).reshape(rows, columns)


@given(st.lists(matrices(), max_size=3))
def property_what_is_packed_comes_back(some: list[NDArray[np.int64]]) -> None:
    message = b"".join(bytes(packed(matrix)) for matrix in some)
    at = pa.py_buffer(message).address
    for matrix in some:
        back, size = unpacked(at, *matrix.shape)
        at += size
        assert back.shape == matrix.shape and (back == matrix).all()
    assert at == pa.py_buffer(message).address + len(message)


@given(matrices())
def property_the_same_matrix_gives_the_same_bytes(matrix: NDArray[np.int64]) -> None:
    assert bytes(packed(matrix)) == bytes(packed(matrix.copy()))


def oracle_a_column_takes_what_its_range_needs() -> None:
    rows = 100_000
    matrix = np.empty((rows, 4), np.int64)
    matrix[:, 0] = 1  # nothing
    matrix[:, 1] = np.arange(rows) % 200 - 100  # one byte
    matrix[:, 2] = 10**15 + np.arange(rows)  # three
    matrix[:, 3] = np.arange(rows) * 2**40  # eight
    assert len(packed(matrix)) < 12 * rows + 200
