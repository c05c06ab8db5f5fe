"""Kernels compiled ahead into numba's cache, so that no query waits for it, or loaded from there."""

import importlib
import pkgutil
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from squallpy.runtime import kernels
from squallpy.runtime.kernels.c_functions import C_FUNCTIONS, CFunction
from squallpy.runtime.kernels.kernel_compiler import KERNELS, Kernel
from squallpy.runtime.kernels.matrix import sweeps, tiles

_OF_SOURCES = ("squallpy.runtime.formats.line_index", "squallpy.runtime.formats.numerals")  # the scans of text files
_LONG = (
    "run_statements", "_sort_rows", "upsert_entries", "upsert_records", "run_program", "joined", "permute_columns",
    "_intern", "run", "add_up_rows",
)  # fmt: skip
"""Kernels that take longest to compile, which begin first."""
COMMON = (
    "run_program", "upsert_records", "statement_steps.run", "grow_on", "clear_records", "begin_growing", "_fold",
    "column_packing._pack", "column_packing._unpack", "sum_payloads",
)  # fmt: skip
"""Kernels that most queries call."""


def load_cached(only: Sequence[str]) -> None:
    """Load kernels that the disk cache has; others are loaded or compiled when they are called."""
    for kernel in _every():
        if isinstance(kernel, Kernel) and kernel.name.endswith(tuple(only)) and kernel.is_cached:
            kernel.load()


def compile_missing() -> None:
    """Compile all kernels that the cache lacks, in this process, or in another those that were loaded here before."""
    missing = [kernel for kernel in _every() if not kernel.is_cached]
    for number, kernel in enumerate(missing, 1):
        if kernel.is_loaded:  # and what the cache had was deleted, or replaced by what is of other sources
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                pool.submit(_compile, kernel.name).result()
        kernel.load()
        _tell(number, len(missing))


def compile_together(only: Sequence[str] = ()) -> None:
    """Compile what the cache lacks of all kernels, or of `only` some, by a process for each core; long ones first."""
    missing = [k.name for k in _every() if not k.is_cached and (not only or k.name.endswith(tuple(only)))]
    missing.sort(key=lambda name: not name.endswith(_LONG))
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for number, _ in enumerate(pool.map(_compile, missing), 1):
            _tell(number, len(missing))


def _tell(number: int, of: int) -> None:
    if number % 5 == 0 or number == of:
        sys.stderr.write(f"squallpy: {number} of {of} kernels are compiled\n")


def _compile(name: str) -> None:
    importlib.import_module(name.rpartition(".")[0])
    next(kernel for kernel in _every() if kernel.name == name).load()


def _every() -> list[Kernel | CFunction]:
    """List the kernels of all modules, the sweeps over matrices among them, and what printed code calls.

    Not those that are made elsewhere, as printed code is.
    """
    for module in pkgutil.walk_packages(kernels.__path__, kernels.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for name in _OF_SOURCES:
        importlib.import_module(name)
    for semiring in tiles.SEMIRINGS.values():
        sweeps.sweep_of(semiring)
    found: list[Kernel | CFunction] = [*KERNELS, *C_FUNCTIONS]
    return [each for each in found if each.name.startswith("squallpy.")]
