"""Compiled kernels are taken from the cache only while the files that they inline are as they were."""

import importlib
import inspect
import pkgutil
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from squallpy.runtime.kernels import kernel_compiler, kernel_precompilation
from squallpy.runtime.kernels.block_steps import BLOCK_STEPS
from squallpy.runtime.kernels.c_functions import CFunction
from squallpy.runtime.kernels.kernel_compiler import KERNELS, kernel, source_stamp
from squallpy.runtime.kernels.look_ahead import AHEAD_STEPS
from squallpy.runtime.kernels.pool_records import clear_records
from squallpy.runtime.kernels.real_lanes import REAL_STEPS
from squallpy.runtime.kernels.sorted_steps import SORTED_STEPS
from squallpy.runtime.kernels.trigger_steps import STEPS

FILES = {
    "kernels/sums.py": "from squallpy.base.units import WORD\nfrom squallpy.kernels import (\n  hashing, memory,\n)\n",
    "kernels/__init__.py": "",
    "kernels/hashing.py": "from numpy import int64\n",
    "kernels/memory.py": "import squallpy\nfrom squallpy.kernels.pages import size, start\n",
    "kernels/pages.py": "from squallpy.kernels.memory import free\n",
    "kernels/trees.py": "",
    "base/units.py": "WORD = 8\n",
}


@pytest.mark.parametrize("changed", FILES)
def test_stamp_changes_with_what_a_file_imports(changed: str, tmp_path: Path) -> None:
    folder = tmp_path / "squallpy"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    before = stamp_anew(folder / "kernels/sums.py", tmp_path)
    assert stamp_anew(folder / "kernels/sums.py", tmp_path) == before
    (folder / changed).write_text(FILES[changed] + "x = 1\n")
    assert (stamp_anew(folder / "kernels/sums.py", tmp_path) == before) is (changed == "kernels/trees.py")


def stamp_anew(file: Path, root: Path) -> bytes:
    """As in a process of its own."""
    for cached in (kernel_compiler.source_stamp, kernel_compiler._content_hash, kernel_compiler._imported):
        cached.cache_clear()
    return source_stamp(file, root)


def test_stamp_of_a_kernel_counts_constants_of_the_base() -> None:
    """What a kernel takes as a constant from elsewhere in the package is compiled into it."""
    package = Path(kernel_compiler.__file__).parents[2]
    found = kernel_compiler._imported(package / "runtime/kernels/cofactor_blocks.py", package.parent)
    assert package / "base/rings/cofactor.py" in found


def test_what_printed_code_calls_is_compiled_ahead() -> None:
    """Else the first compiled trigger waits for it, each function up to half a minute."""
    ahead = {function.name: function for function in kernel_precompilation._every() if isinstance(function, CFunction)}
    for function in (*STEPS, *BLOCK_STEPS, *AHEAD_STEPS, *REAL_STEPS, *SORTED_STEPS):
        function.load()
        assert ahead[function.name] is function and function.is_cached


def test_compiled_code_calls_no_entry_point() -> None:
    """It would be inlined, for which the disk cache has no bitcode."""
    kernel("void(int64[::1])")(lambda frame: clear_records(frame))
    calling = KERNELS.pop()
    with pytest.raises(TypeError, match=r"clear_records is an entry point: compiled code takes its py_func"):
        calling._dispatcher.compile(calling._signature)


MODULES = ("runtime.formats", "runtime.connectors.kafka.message_kernel", "runtime.joiners")


def test_no_kernel_of_any_module_calls_another() -> None:
    """Those of formats and connectors are compiled at their first call alone."""
    for name in MODULES:
        module = importlib.import_module(f"squallpy.{name}")
        for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
            with suppress(ImportError):  # of what an extra installs
                importlib.import_module(each.name)
    kernel_precompilation._every()
    entries = {id(each.function): each.name for each in KERNELS}
    package = Path(kernel_compiler.__file__).parents[2]
    files = [file for file in package.rglob("*.py") if re.search(r"^@kernel", file.read_text(), re.MULTILINE)]
    assert {file.stem for file in files} <= {each.name.split(".")[-2] for each in KERNELS}
    calls = {each.name: entries[id(part)] for each in KERNELS for part in parts(each.function) if id(part) in entries}
    assert not calls


def parts(compiled: Any) -> list[Any]:
    """What a compiled function calls that is compiled, itself and by others."""
    found = list[Any]()
    left = [compiled]
    while left:
        code = left.pop().py_func
        outer = inspect.getclosurevars(code)
        for value in {**outer.globals, **outer.nonlocals}.values():
            if hasattr(value, "py_func") and not any(value is each for each in found):
                found.append(value)
                left.append(value)
    return found
