"""Arithmetic of printed code beside Python's integers."""

from hypothesis import given
from hypothesis import strategies as st

from squallpy.runtime.kernels.kernel_compiler import kernel
from squallpy.runtime.kernels.trigger_steps import multiply_fits

EDGES = [sign * (1 << bits) + more for bits in (0, 31, 32, 62) for sign in (1, -1) for more in (-1, 0, 1)]
WORDS = st.sampled_from([*EDGES, -(2**63), 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)


@kernel("int64(int64, int64)")
def fits(a: int, b: int) -> int:
    """Do what `multiply_fits` does, as an entry point."""
    return multiply_fits(a, b)


@given(WORDS, WORDS)
def property_a_product_fits_if_it_is_a_word_but_the_least(a: int, b: int) -> None:
    assert fits(a, b) == (-(2**63) < a * b < 2**63)
