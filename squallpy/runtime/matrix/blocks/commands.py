"""Commands of the driver to the partitions that have blocks of matrices, and the wire format of arrays."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from squallpy.base.json_codec import from_json, to_json
from squallpy.base.records import dataclass
from squallpy.physical.matrix.block_supersteps import Phase
from squallpy.runtime.matrix.stored_views import Array
from squallpy.runtime.messages.deltas import pack_head, unpack_head

Arrays = dict[str, Array]


@dataclass(frozen=True, slots=True)
class Commands:
    """Commands for a batch.

    Args:
        sizes: The dimensions of each program.
        phases: The phases of each program, in order.
        arrays: The operands of phases, cells or factors, under `program/phase/operand`.
        figures: The driver's part of the statistics of the batch.
        directive: The one for the stages behind the supersteps.
        slices: What each of these partitions reads of the other relations, encoded.
    """

    batch: int
    sizes: Mapping[str, Mapping[str, int]]
    phases: Mapping[str, Sequence[Phase]]
    arrays: Mapping[str, Array]
    figures: Mapping[str, Any]
    directive: str = ""
    slices: str = ""

    @property
    def head(self) -> dict[str, Any]:
        """Everything but the arrays, as JSON."""
        phases = {name: [to_json(phase) for phase in some] for name, some in self.phases.items()}
        names = ("batch", "sizes", "figures", "directive", "slices")
        return {name: getattr(self, name) for name in names} | {"phases": phases}

    def packed(self) -> bytes:
        return pack_arrays(self.head, self.arrays)

    def without_begun(self, begun: Mapping[str, int]) -> "Commands":
        """Drop the operands of phases that have begun, so many of each program."""
        places = ((key, key.split("/")) for key in self.arrays)
        later = {key: self.arrays[key] for key, (name, number, _) in places if int(number) >= begun[name]}
        return replace(self, arrays=later)

    @staticmethod
    def of(head: Mapping[str, Any], arrays: Arrays) -> "Commands":
        phases = {name: [from_json(Phase, phase) for phase in some] for name, some in head["phases"].items()}
        given = {key: array for key, array in arrays.items() if "|" not in key}
        simple = (head[name] for name in ("figures", "directive", "slices"))
        return Commands(head["batch"], head["sizes"], phases, given, *simple)

    def phases_of(self, name: str) -> list[tuple[Phase, Arrays]]:
        """Return the phases of a program, each with its operands."""
        given: list[Arrays] = [{} for _ in self.phases[name]]
        for key, array in self.arrays.items():
            program, number, which = key.split("/")
            if program == name:
                given[int(number)][which] = array
        return list(zip(self.phases[name], given, strict=True))


def pack_arrays(head: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Pack a message: plain facts, then arrays as they lie in memory."""
    facts, parts = [], []
    for name, array in arrays.items():
        by_columns = array.ndim == 2 and not array.flags.c_contiguous and array.shape[0] > array.shape[1]
        facts.append([name, array.dtype.name, array.shape, "F" if by_columns else "C"])
        parts.append(array.tobytes("F" if by_columns else "C"))
    return b"".join([pack_head({**head, "arrays": facts}), *parts])


def unpack_arrays(message: bytes) -> tuple[dict[str, Any], Arrays]:
    """Reverse `pack_arrays`; the arrays are read-only."""
    head, source = unpack_head(message)
    arrays, at = {}, source.tell()
    for name, dtype, shape, order in head.pop("arrays"):
        found = np.frombuffer(message, dtype, int(np.prod(shape)), at)
        arrays[name] = found.reshape(shape, order=order)
        at += found.nbytes
    return head, arrays
