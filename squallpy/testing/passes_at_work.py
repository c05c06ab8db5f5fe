"""Step tests that show a pass or rule at work: `squall explain trace` has it.

python -m squallpy.testing.passes_at_work     rewrite tests/passes/at_work.list: for each the six shortest of them
"""

from collections.abc import Collection
from dataclasses import field
from functools import cache
from pathlib import Path
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.maintain.matrix.script_programs import Programs
from squallpy.optimizer.pass_manager import PassObserver
from squallpy.optimizer.pipeline import ALL
from squallpy.runtime.evaluate.constant_evaluation import fold_constant
from squallpy.testing.step_tests import list_step_tests, read_steps

AT_WORK = Path(__file__).parents[2] / "tests" / "passes" / "at_work.list"
MOST = 6
# NB: the view in which LAG looks rows up by their key, and which a broken key shows, is made by a pass
OF_SEVERAL = ("share_results",)  # passes that have work only where a script has several queries
NEEDS_ITS_PASSES = {"key_broken_lag"}


@dataclass
class _Changes(PassObserver):
    """Names of the passes and rules that changed a query."""

    names: set[str] = field(default_factory=set)

    def observe_step(self, name: str, before: Any, after: Any) -> None:
        if before != after:
            self.names.add(name)


def list_switches() -> list[str]:
    """List what `--set passes=-NAME` can switch off: all rules, and the passes that have none."""
    optional = (each for _, passes in ALL for each in passes if not each.is_required)
    names = dict.fromkeys(name for each in optional for name in each.rules or (each.name,))
    return [name for name in names if name not in OF_SEVERAL]


@cache
def passes_at_work(path: Path) -> Collection[str]:
    """Find the passes and rules that change a step test's query, of those that can be switched off."""
    steps, changes = read_steps(path), _Changes()
    try:
        compiled = compile_script(steps.script, path.name, lambda relation: (), Programs().outputs, fold_constant)
        for query in compiled.queries:
            to_program(query, observer=changes)
    except SquallError:
        return ()  # a test of an error
    return [name for name in list_switches() if name in changes.names]


def choose() -> dict[str, list[str]]:
    """Choose the shortest step tests for each pass and rule."""
    chosen: dict[str, list[str]] = {name: [] for name in list_switches()}
    for name, path in sorted(list_step_tests().items(), key=lambda each: (each[1].stat().st_size, each[0])):
        if name in NEEDS_ITS_PASSES:
            continue
        for switch in passes_at_work(path):
            if len(chosen[switch]) < MOST:
                chosen[switch].append(name)
    return chosen


def read_chosen() -> dict[str, list[str]]:
    """Read which step tests are recorded for each pass and rule."""
    return {name: tests.split() for line in AT_WORK.read_text().splitlines() for name, tests in [line.split(":")]}


if __name__ == "__main__":
    AT_WORK.write_text("".join(f"{name}: {' '.join(tests)}\n" for name, tests in choose().items()))
