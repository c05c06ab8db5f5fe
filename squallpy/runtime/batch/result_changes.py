"""Changes of results that are deltas as they are, so that nobody needs to copy them from one pool to another.

derive ΔN1 | Q(a, b, value) += ΔN1   →   the records of ΔN1 are the change of Q
"""

from collections.abc import Iterable

from squallpy.physical.plan import Plan, Update
from squallpy.runtime.compiled.functions import CompiledRun
from squallpy.runtime.kernels.pool import Pool


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
