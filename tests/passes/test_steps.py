"""Each pass and rule switched off in step tests where it is at work: answers and changes stay the same.

`make test` runs six for each, recorded in `at_work.list`, `make passes` all that there are.
"""

from pathlib import Path

import pytest

from squallpy.testing.engines import VolatileEngine
from squallpy.testing.passes_at_work import NEEDS_ITS_PASSES, choose, list_switches, passes_at_work, read_chosen
from squallpy.testing.step_tests import list_step_tests, run_steps

CHOSEN = read_chosen()
STEPS = list_step_tests()


def run_without(switch: str, name: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    run_steps(STEPS[name], VolatileEngine(passes=f"-{switch}"), folder)


@pytest.mark.parametrize(
    ("switch", "name"),
    [
        pytest.param(switch, name, marks=pytest.mark.xdist_group(name))
        for switch, names in CHOSEN.items()
        for name in names
    ],
)
def differential_without_a_pass(switch: str, name: str, tmp_path: Path) -> None:
    assert switch in passes_at_work(STEPS[name]), "`python -m squallpy.testing.passes_at_work` chooses anew"
    run_without(switch, name, tmp_path)


def test_every_pass_that_can_be_switched_off_is_at_work() -> None:
    assert list(CHOSEN) == list_switches() and all(CHOSEN.values())


@pytest.mark.passes
@pytest.mark.parametrize("name", [name for name in STEPS if name not in NEEDS_ITS_PASSES])
def differential_without_each_pass(name: str, tmp_path: Path) -> None:
    for switch in passes_at_work(STEPS[name]):
        try:
            run_without(switch, name, tmp_path / switch)
        except AssertionError as error:
            raise AssertionError(f"without {switch}: {error}") from error


@pytest.mark.passes
def golden_shortest_step_tests() -> None:
    """What `at_work.list` says: `python -m squallpy.testing.passes_at_work` rewrites it."""
    assert choose() == CHOSEN
