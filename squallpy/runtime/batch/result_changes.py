"""Changes of results: where they are noted, and those that are deltas as they are, which nobody needs to copy from one
pool to another.

derive ΔN1 | Q(a, b, value) += ΔN1   →   the records of ΔN1 are the change of Q
"""

from collections.abc import Iterable

import numpy as np

from squallpy.physical.plan import Plan, Update
from squallpy.runtime.compiled.functions import CompiledRun
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.result.noted_rows import NotedRows


class ResultRoom:
    """Memory for the keys of a result's groups that change, and their payloads before and after.

    Args:
        words: What the driver reads: at `place` the address of the memory, and its words.
    """

    def __init__(self, name: str, words: Words, place: int) -> None:
        self._words, self._place = words, place
        self.noted = NotedRows(name, 0, np.empty(0, np.int64))
        self.make_room()

    def make_room(self) -> None:
        """Make it twice as large."""
        rows = self.noted.words = np.empty(max(512, 2 * len(self.noted.words)), np.int64)
        self._words[self._place : self._place + 2] = rows.ctypes.data, len(rows)

    def put(self, count: int, words: Words) -> None:
        """Note a change of so many groups."""
        while len(self.noted.words) < len(words):
            self.make_room()
        self.noted.count, self.noted.words[: len(words)] = count, words


def find_copies(plan: Plan, runs: Iterable[CompiledRun], sums: dict[str, Pool]) -> dict[str, str]:
    """Find the results whose change is one delta, and that delta of each.

    A function does nothing but copy it.

    Args:
        sums: The pools in which a batch adds up deltas.
    """
    steps, results = plan.stages[0].steps, {result.name: result for result in plan.results}
    updates = [step for step in steps if isinstance(step, Update)]
    found = dict[str, str]()
    for run in runs:
        step = steps[run.code.first]
        is_one = run.code.stop == run.code.first + 1 and not run.code.unique
        if is_one and isinstance(step, Update) and step.target in results:
            alone = sum(update.target == step.target for update in updates) == 1
            same = step.delta in sums and results[step.target].payload == sums[step.delta].payload
            if alone and same and step.is_copy:
                found[step.target] = step.delta
    return found
