"""State of a program in a partition within a batch: between two exchanges it is in a message to itself."""

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from squallpy.base.records import dataclass
from squallpy.physical.matrix.block_supersteps import MatrixLayout, Value
from squallpy.runtime.matrix.blocks.commands import Arrays
from squallpy.runtime.matrix.stored_views import Array

Parts = dict[Value, dict[int, Array]]  # by value and partition: what was sent


def array_key(name: str, value: Value) -> str:
    return f"{name}|{value[0]}|{value[1]}"


_PLAIN = ("wants_evaluation", "reason", "has_changed_input", "singular", "touches_all", "drift")


@dataclass
class SuperstepState:
    """State of one program after a superstep.

    Args:
        wants_evaluation: The program is to be evaluated behind its triggers; `reason` says so if a trigger has asked.
        has_changed_input: The input of the trigger that fires has its change.
        missing: Values that depend on the inverse of a singular matrix; `singular` says of which.
        drift: The largest that was seen.
        touches_all: Anything may have changed; else what is in `touched`, rows and columns by view.
        sent: Values for other partitions, with the number of each.
        changed: Readings, each with the rows that went and came.
    """

    values: dict[Value, Array] = field(default_factory=dict)
    wants_evaluation: bool = False
    reason: str = ""
    has_changed_input: bool = False
    missing: set[str] = field(default_factory=set)
    singular: str = ""
    drift: float = 0.0
    touches_all: bool = False
    touched: dict[str, tuple[Array, Array]] = field(default_factory=dict)
    sent: list[tuple[int, Value, Array]] = field(default_factory=list)
    changed: list[tuple[Any, Any]] = field(default_factory=list)
    nbytes: int = 0

    def packed(self, name: str) -> tuple[dict[str, Any], Arrays]:
        """Pack the state of a program for this partition's next superstep."""
        arrays = {array_key(name, value): array for value, array in self.values.items()}
        for view, (rows, columns) in self.touched.items():
            arrays |= {f"{name}|{view}|touched rows": rows, f"{name}|{view}|touched columns": columns}
        facts = {fact: getattr(self, fact) for fact in _PLAIN}
        values = [[value, form] for value, form in self.values]
        return facts | {"missing": sorted(self.missing), "values": values, "touched": sorted(self.touched)}, arrays

    @staticmethod
    def of(facts: Mapping[str, Any], arrays: Arrays, name: str) -> "SuperstepState":
        """Reverse `packed`."""
        plain = {fact: facts[fact] for fact in _PLAIN}
        values = {
            (value, MatrixLayout(form)): arrays[array_key(name, (value, form))] for value, form in facts["values"]
        }
        touched = {
            view: (arrays[f"{name}|{view}|touched rows"], arrays[f"{name}|{view}|touched columns"])
            for view in facts["touched"]
        }
        return SuperstepState(values, missing=set(facts["missing"]), touched=touched, **plain)

    def figures(self) -> dict[str, Any]:
        """Return the figures to report."""
        evaluated = {"how": "evaluated", "why": self.reason} if self.reason else {}
        return evaluated | {"drift": self.drift} | ({"singular": self.singular} if self.singular else {})
