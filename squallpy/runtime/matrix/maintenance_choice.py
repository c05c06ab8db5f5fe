"""The decision on a batch of changes: triggers apply them, or the program is evaluated anew.

    reason_to_evaluate(prices, {"A": 3})                      →   "" or "cheaper than the triggers"
    reason_to_evaluate(prices, {"A": 3}, grown={"n"})         →   "a dimension has grown", if it cannot grow in place

It depends on dimensions, densities and ranks alone, so that it is the same for views on the driver and in blocks.
"""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from squallpy.base.semirings import Semiring
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.materialise import IncrementalProgram, MatrixTrigger
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.trigger_cost import evaluation_price, trigger_price
from squallpy.runtime.matrix.algebra import select_changed_rows
from squallpy.runtime.matrix.cells import Cells
from squallpy.runtime.matrix.stored_views import Array


class Prices:
    """Costs of a program's triggers and of its evaluation at some dimensions, under a strategy.

    Args:
        strategy: `auto` takes what is cheaper, `incr` always triggers, `reeval` never.
    """

    def __init__(self, maintained: IncrementalProgram, sizes: Sizes, strategy: str) -> None:
        self.maintained, self._sizes, self._strategy = maintained, dict(sizes), strategy
        self._of_triggers: dict[tuple[str, int], float] = {}

    @cached_property
    def evaluation(self) -> float:
        """The cost of evaluating the program."""
        return evaluation_price(self.maintained, self._sizes).total

    def of_trigger(self, name: str, rank: int) -> float:
        """Compute the cost of an input's trigger for a change of a rank."""
        case = (name, rank)
        if case not in self._of_triggers:
            trigger = self.maintained.triggers[name]
            self._of_triggers[case] = trigger_price(self.maintained, trigger, rank, self._sizes).total
        return self._of_triggers[case]

    def is_evaluation_cheaper(self, ranks: Mapping[str, int]) -> bool:
        """True if triggers take longer than one evaluation for changes of these ranks, one per input."""
        if self._strategy != "auto":
            return self._strategy == "reeval"
        return sum(self.of_trigger(name, rank) for name, rank in ranks.items()) > self.evaluation

    @cached_property
    def kept(self) -> tuple[Name, ...]:
        """The views that are worth keeping: only outputs, where the triggers that read others never pay."""
        kept, program = self.maintained.kept, self.maintained.program
        inputs = [name for name in self.maintained.triggers if program.input(name)]
        if self._strategy != "incr" and all(self.is_evaluation_cheaper({name: 1}) for name in inputs):
            return tuple(name for name in kept if name.name in program.outputs)
        return kept

    @cached_property
    def kept_names(self) -> frozenset[str]:
        """The names of `kept`."""
        return frozenset(name.name for name in self.kept)

    @cached_property
    def keeps_all(self) -> bool:
        """True if all views are kept that triggers read."""
        return self.kept == self.maintained.kept


def reason_to_rebuild(
    maintained: IncrementalProgram, grown: Collection[str], *, is_first: bool = False, is_singular: bool = False
) -> str:
    """Return why a program is built anew on a batch, as its views cannot grow in place; "" if they can.

    Args:
        grown: Dimensions that are larger than before.
        is_singular: Views depend on the inverse of a singular matrix.
    """
    if is_first:
        return "the first rows"
    if not set(maintained.growing).issuperset(grown):
        return "a dimension has grown"
    return "a matrix had no value" if is_singular and grown else ""


def reason_to_evaluate(
    prices: Prices,
    ranks: Mapping[str, int],
    *,
    grown: Collection[str] = (),
    is_first: bool = False,
    is_singular: bool = False,
    takes_away: bool = False,
    has_views: bool = True,
) -> str:
    """Return why a batch is applied by evaluating the program anew; "" if triggers apply it.

    Args:
        ranks: Of the change of each input.
        grown, is_singular: As for `reason_to_rebuild`.
        takes_away: Entries go that the semiring cannot subtract.
        has_views: All views are there that triggers read.
    """
    if grown or is_first:
        why = reason_to_rebuild(prices.maintained, grown, is_first=is_first, is_singular=is_singular)
        if why:
            return why
    if takes_away:
        return "rows were taken away"
    if is_singular and ranks:
        return "a matrix had no value"
    if (ranks and prices.is_evaluation_cheaper(ranks)) or not has_views:
        return "cheaper than the triggers"
    return ""


def rank_of(maintained: IncrementalProgram, name: str, cells: Cells) -> int:
    """Compute the rank at which a change of an input's cells is applied."""
    trigger = maintained.triggers.get(name)  # NB: of tables, which do not change, there is none
    return len(np.unique(cells.rows)) if trigger and trigger.by_rows else cells.rank


def factor_for(trigger: MatrixTrigger, u: Array, v: Array, ring: Semiring) -> tuple[Array, Array]:
    """Factor a change as a trigger takes it: by rows where it computes changed rows again."""
    return select_changed_rows(u, v, ring) if trigger.by_rows else (u, v)


def report_decision(rank: int, why: str) -> dict[str, Any]:
    """Return the statistics of a decision: the rank of the change, how it was applied, and why so."""
    return {"rank": rank, "how": "evaluated" if why else "incremental", "why": why}
