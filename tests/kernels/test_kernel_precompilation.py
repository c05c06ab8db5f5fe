"""Kernels that are compiled ahead are on the disk, whatever this process has in memory."""

from pathlib import Path

import pytest

from squallpy.runtime.kernels import kernel_precompilation
from squallpy.runtime.kernels.c_functions import C_FUNCTIONS, CFunction
from squallpy.runtime.kernels.kernel_compiler import KERNELS, Kernel


def index_of(kernel: Kernel | CFunction) -> Path:
    index = kernel._index() if isinstance(kernel, Kernel) else kernel._open()._cache._cache_file
    return Path(index._index_path)


@pytest.mark.parametrize("name", ["radix_sort.ascending", "trigger_steps._find"])
def fault_the_cache_is_deleted_under_a_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel_precompilation.load_cached([name])
    loaded: list[Kernel | CFunction] = [*KERNELS, *C_FUNCTIONS]
    chosen = next(each for each in loaded if name in each.name)
    chosen.load()
    monkeypatch.setattr(kernel_precompilation, "_every", lambda: [chosen])
    kept = index_of(chosen).read_bytes()
    index_of(chosen).unlink()
    try:
        assert chosen.is_loaded and not chosen.is_cached
        kernel_precompilation.compile_missing()
        assert chosen.is_cached
    finally:
        index_of(chosen).write_bytes(kept)
