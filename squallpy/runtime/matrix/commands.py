"""What the driver says of a batch to the partitions that have matrices, and how arrays travel between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from squallpy.base.json_codec import from_json, to_json
from squallpy.physical.matrix.blocks import Phase
from squallpy.runtime.matrix.views import Array
from squallpy.runtime.messages.deltas import pack_head, unpack_head

Arrays = dict[str, Array]


@dataclass(frozen=True, slots=True)
class Orders:
    """By program: the sizes of its dimensions, its phases, and of each the cells that it adds, or its factors, under
    `program/phase/which`. What goes into the statistics of the batch, and the course of the stages behind."""

    batch: int
    sizes: Mapping[str, Mapping[str, int]]
    phases: Mapping[str, Sequence[Phase]]
    arrays: Mapping[str, Array]
    figures: Mapping[str, Any]
    course: str = ""

    @property
    def head(self) -> dict[str, Any]:
        """All of it but the arrays."""
        phases = {name: [to_json(phase) for phase in some] for name, some in self.phases.items()}
        facts = {"batch": self.batch, "sizes": self.sizes, "figures": self.figures, "course": self.course}
        return facts | {"phases": phases}

    def packed(self) -> bytes:
        return packed(self.head, self.arrays)

    def but(self, begun: Mapping[str, int]) -> "Orders":
        """Without what phases were given that have begun: by program, how many."""
        places = ((key, key.split("/")) for key in self.arrays)
        later = {key: self.arrays[key] for key, (name, number, _) in places if int(number) >= begun[name]}
        return replace(self, arrays=later)

    @staticmethod
    def of(head: Mapping[str, Any], arrays: Arrays) -> "Orders":
        phases = {name: [from_json(Phase, phase) for phase in some] for name, some in head["phases"].items()}
        given = {key: array for key, array in arrays.items() if "|" not in key}
        return Orders(head["batch"], head["sizes"], phases, given, head["figures"], head["course"])

    def of_program(self, name: str) -> list[tuple[Phase, Arrays]]:
        """Its phases, each with what it is given."""
        given: list[Arrays] = [{} for _ in self.phases[name]]
        for key, array in self.arrays.items():
            program, number, which = key.split("/")
            if program == name:
                given[int(number)][which] = array
        return list(zip(self.phases[name], given, strict=True))


def packed(head: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """A message: plain facts, then arrays as they lie in memory."""
    facts, parts = [], []
    for name, array in arrays.items():
        by_columns = array.ndim == 2 and not array.flags.c_contiguous and array.shape[0] > array.shape[1]
        facts.append([name, array.dtype.name, array.shape, "F" if by_columns else "C"])
        parts.append(array.tobytes("F" if by_columns else "C"))
    return b"".join([pack_head({**head, "arrays": facts}), *parts])


def unpacked(message: bytes) -> tuple[dict[str, Any], Arrays]:
    """The reverse of `packed`; arrays are read-only."""
    head, source = unpack_head(message)
    arrays, at = {}, source.tell()
    for name, dtype, shape, order in head.pop("arrays"):
        found = np.frombuffer(message, dtype, int(np.prod(shape)), at)
        arrays[name] = found.reshape(shape, order=order)
        at += found.nbytes
    return head, arrays
