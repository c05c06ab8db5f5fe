"""Boolean triggers as one kernel: which are, and that they do and tell what the program says."""

from unittest.mock import patch

import numpy as np
import pytest

from squallpy.base.semirings import BOOLEAN
from squallpy.maintain.matrix.compile_triggers import compile_program
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.materialise import IncrementalProgram
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program
from squallpy.physical.matrix.view_passes import schedule_passes
from squallpy.runtime.kernels.matrix import boolean
from squallpy.runtime.matrix.fused_boolean import fuse
from squallpy.runtime.matrix.maintained_program import MaintainedProgram

N = 150
ONE = {
    "R := iterate[3](eye(n))(acc => A * acc + eye(n))": True,
    "B := A * A; C := A * B'": True,
    "B := A * (A + ones(n, n))": True,
    "R := A ^ 4": False,  # products of small matrices between visits
}


def maintained(text: str) -> IncrementalProgram:
    made = [MatrixInput(Name("A", Size.of("n"), Size.of("n")))]
    return compile_program(read_program(text, made, BOOLEAN), ["A"], {"n": N}).maintained


@pytest.mark.parametrize("text", ONE)
def test_which_triggers_are_one_kernel(text: str) -> None:
    made = maintained(text)
    trigger = made.triggers["A"]
    assert (fuse(trigger, schedule_passes(trigger, made.matrices), 2) is not None) == ONE[text]


@pytest.mark.parametrize("small", [1, 1 << 17])
@pytest.mark.parametrize("text", ONE)
def differential_a_trigger_and_evaluation(text: str, small: int) -> None:
    """Views are what the program says, and what has changed is where the trigger says, also when threads share it."""
    made, random = maintained(text), np.random.default_rng(7)
    A = random.random((N, N)) < 0.005
    live = MaintainedProgram(made, {"A": A}, "incr")
    live.take_touched()
    with patch.object(boolean, "_SMALL", small):
        for rank in (1, 2, 1, 3, 2):
            before = {name.name: live.read(name.name) for name in made.stored}
            u, v = random.random((N, rank)) < 0.02, random.random((rank, N)) < 0.02
            u[:, 0] &= live.counts.updates != 2  # once nothing changes
            live.update("A", u, v)
            A = A | (u @ v)
            anew, touched = MaintainedProgram(made, {"A": A}, "incr"), live.take_touched()
            assert touched is not None
            for name, old in before.items():
                assert np.array_equal(live.read(name), anew.read(name))
                rows, columns = np.nonzero(live.read(name) != old)
                there = touched.get(name, (np.zeros(N, bool), np.zeros(N, bool)))
                assert there[0][rows].all() and there[1][columns].all()
