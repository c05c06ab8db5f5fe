"""A batch of one program in a partition, as far as it has come: between two exchanges, in a message to itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from squallpy.physical.matrix.blocks import Form, Value
from squallpy.runtime.matrix.commands import Arrays
from squallpy.runtime.matrix.views import Array

Parts = dict[Value, dict[int, Array]]  # by value and partition: what was sent


def key(name: str, value: Value) -> str:
    return f"{name}|{value[0]}|{value[1]}"


_SIMPLE = ("asked", "why", "taken", "singular", "anywhere", "drift")


@dataclass
class Now:
    """A batch of one program, as far as it has come."""

    values: dict[Value, Array] = field(default_factory=dict)
    asked: bool = False  # for an evaluation
    why: str = ""  # if a trigger has asked
    taken: bool = False  # the input of the trigger that fires has its change
    missing: set[str] = field(default_factory=set)  # what depends on an inverse that there is not
    singular: str = ""  # of what
    drift: float = 0.0  # as far as it was looked for
    anywhere: bool = False  # anything may have changed
    touched: dict[str, tuple[Array, Array]] = field(default_factory=dict)  # else: views, in which rows and columns
    sent: list[tuple[int, Value, Array]] = field(default_factory=list)  # to whom
    shown: list[tuple[Any, Any]] = field(default_factory=list)
    nbytes: int = 0

    def packed(self, name: str) -> tuple[dict[str, Any], Arrays]:
        """Pack the state of a program for this partition's next superstep."""
        arrays = {key(name, value): array for value, array in self.values.items()}
        for view, (rows, columns) in self.touched.items():
            arrays |= {f"{name}|{view}|touched rows": rows, f"{name}|{view}|touched columns": columns}
        facts = {key: getattr(self, key) for key in _SIMPLE}
        values = [[value, form] for value, form in self.values]
        return facts | {"missing": sorted(self.missing), "values": values, "touched": sorted(self.touched)}, arrays

    @staticmethod
    def of(facts: Mapping[str, Any], arrays: Arrays, name: str) -> "Now":
        """Reverse `packed`."""
        simple = {key: facts[key] for key in _SIMPLE}
        values = {(value, Form(form)): arrays[key(name, (value, form))] for value, form in facts["values"]}
        touched = {
            view: (arrays[f"{name}|{view}|touched rows"], arrays[f"{name}|{view}|touched columns"])
            for view in facts["touched"]
        }
        return Now(values, missing=set(facts["missing"]), touched=touched, **simple)

    def told(self) -> dict[str, Any]:
        """Return the figures to report."""
        evaluated = {"how": "evaluated", "why": self.why} if self.why else {}
        return evaluated | {"drift": self.drift} | ({"singular": self.singular} if self.singular else {})
