"""Queries that are said only to grow take no row back: all step tests of such, without their deletes."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from squallpy.base.errors import SquallError
from squallpy.logical.retractions import retracting_operator
from squallpy.script_session import ScriptSession
from squallpy.testing.engines import VolatileEngine
from squallpy.testing.oracle import MULT
from squallpy.testing.step_tests import _read_inputs, list_step_tests, read_steps

OP = ", op '__op'"


class NothingGoes(VolatileEngine):
    """An engine that gets no deletes, and must not print any."""

    def push(self, rows: dict[str, pa.Table]) -> pa.Table:
        come = {name: some.filter(pc.greater(some[MULT], 0)) for name, some in rows.items()}
        changes = super().push(come)
        assert pc.min(changes[MULT]).as_py() in (None, 1)
        return changes


def grows(path: Path) -> bool:
    """True if the query of a step test is said only to grow where its streams do."""
    steps = read_steps(path)
    try:
        (query,) = ScriptSession(path, text=steps.script.replace(OP, "")).script.queries
    except (SquallError, ValueError):
        return False
    return retracting_operator(query.plan) is None


@pytest.mark.long
def differential_queries_that_only_grow(tmp_path: Path) -> None:
    known = 0
    for name, path in list_step_tests().items():
        if not grows(path):
            continue
        steps, engine = read_steps(path), NothingGoes()
        inputs = _read_inputs(steps)
        (tmp_path / name).mkdir()
        try:
            engine.start(steps.script, tmp_path / name, inputs.tables)
            for number, section in enumerate(steps.sections):
                if section.head == "batch":
                    engine.push(inputs.batches[number])
            known += 1
        except SquallError:  # it is refused, or fails
            continue
        except AssertionError:
            pytest.fail(f"{name} takes rows back")
    assert known > 100
