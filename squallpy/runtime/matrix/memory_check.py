"""Memory check for the views of a program, before any of them is allocated."""

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from squallpy.base.errors import SquallError
from squallpy.base.semirings import BOOLEAN
from squallpy.maintain.matrix.dimensions import Sizes
from squallpy.maintain.matrix.materialise import IncrementalProgram
from squallpy.maintain.matrix.matrix_expressions import Name

_LIMITS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))


_CELL = 64  # bytes of a cell that is kept as such, while it is merged


def check_memory(
    called: str, maintained: IncrementalProgram, sizes: Sizes, more: int = 0, few: Mapping[str, int] = {}
) -> None:
    """Check that a program's matrices and `more` bytes fit in the memory that is free; SQ5013.

    Args:
        few: The number of cells of inputs that are stored as cells.
    """
    need, free = bytes_needed(maintained, sizes, few) + more, bytes_available()
    if need > free:
        raise memory_error(called, need, free, sizes)


def memory_error(called: str, need: int, free: int, sizes: Sizes) -> SquallError:
    """Make SQ5013 for matrices that do not fit in memory."""
    at = ", ".join(f"{symbol} = {size:,}" for symbol, size in sorted(sizes.items()))
    message = f"the matrices of {called} need {_gigabytes(need)}{f' at {at}' if at else ''}"
    hint = "number rows and columns from 0 without gaps" if sizes else ""
    return SquallError("SQ5013", f"{message}, and {_gigabytes(free)} of memory is free", hint=hint)


def bytes_needed(maintained: IncrementalProgram, sizes: Sizes, few: Mapping[str, int] = {}) -> int:
    """Estimate the bytes of a program's inputs and views, and of the two largest intermediate results."""
    program = maintained.program
    item = np.dtype(program.ring.dtype).itemsize

    def cells(name: Name) -> int:
        return name.rows.at(sizes) * name.cols.at(sizes)

    stored = sum(cells(name) for name in maintained.stored if name.name not in few)
    made = sorted(cells(d.name) for d in maintained.anf.definitions)
    largest = max((cells(i.name) for i in program.inputs if i.name.name not in few), default=0)
    whole = stored * item // (8 if program.ring is BOOLEAN else 1) + (sum(made[-2:]) + largest) * item
    return whole + _CELL * sum(few.values())


def bytes_available() -> int:
    """Return the bytes of memory that this process may still allocate."""
    free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        pass
    for limit, used in _LIMITS:
        try:
            folder = Path("/sys/fs/cgroup")
            free = min(free, int((folder / limit).read_text()) - int((folder / used).read_text()))
        except (OSError, ValueError):  # NB: a limit of `max` is none
            continue
    return free


def _gigabytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GB" if size >= 2**30 / 10 else f"{size / 2**20:,.1f} MB"
