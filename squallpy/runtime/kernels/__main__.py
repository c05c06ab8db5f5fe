"""Compiles all kernels into numba's cache, so that no query waits for it: `python -m squallpy.runtime.kernels`."""

import importlib
import pkgutil

from squallpy.runtime import kernels
from squallpy.runtime.kernels import sweeps, tiles


def load_all() -> None:
    """Import every module of kernels: from the cache, or compiled now."""
    for module in pkgutil.iter_modules(kernels.__path__, kernels.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def compile_all() -> None:
    """All kernels, also the sweeps over matrices, which only queries that have some load."""
    load_all()
    for field in tiles.FIELDS.values():
        sweeps.sweep_of(field)


if __name__ == "__main__":
    compile_all()
    importlib.import_module("squallpy.runtime.sources.lines")  # the scan of text files is a kernel too
