"""All kernels at once: compiled into numba's cache, so that no query waits for it, or loaded from there."""

import importlib
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from squallpy.runtime import kernels
from squallpy.runtime.kernels import sweeps, tiles

_LONG = ("steps", "tree")  # these take most of the time, with what they import
_LINES = "squallpy.runtime.sources.lines"  # the scan of text files is a kernel, too


def load_all() -> None:
    """Import every module of kernels: from the cache, or compiled now."""
    for name in _modules():
        importlib.import_module(name)


def compile_all() -> None:
    """All kernels, also the sweeps over matrices, which only queries that have some load."""
    load_all()
    for field in tiles.FIELDS:
        _compile_sweep(field)


def compile_together() -> None:
    """All kernels, by a process for each core; the long ones first."""
    modules = [*_modules(), _LINES]
    long = [name for name in modules if name.endswith(_LONG)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(_load, name) for name in long]
        tasks += [pool.submit(_compile_sweep, field) for field in tiles.FIELDS]
        tasks += [pool.submit(_load, name) for name in modules if name not in long]
        for task in tasks:
            task.result()


def _modules() -> list[str]:
    found = pkgutil.iter_modules(kernels.__path__, kernels.__name__ + ".")
    return [module.name for module in found if not module.name.endswith("__main__")]


def _load(name: str) -> None:
    importlib.import_module(name)


def _compile_sweep(field: str) -> None:
    sweeps.sweep_of(tiles.FIELDS[field])
