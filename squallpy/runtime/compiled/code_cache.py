"""Printed code as modules, whose machine code is kept on disk by text, version and processor.

numba keeps what it compiles beside the source, with the processor and its own version; that the kernels which a module
calls are as they were, `kernel_compiler` looks. So a folder of modules is all there is, of which processes may share
each. It is this user's alone, for who can write there decides what runs here. Of more than a thousand modules, about a
megabyte each, those that were used longest ago go.

LLVM gives no memory back, 4 to 20 MB for each module that it compiles. So another process compiles, and this one, which
may run for months while queries come and go, takes the code from the disk (0.1 MB).
"""

import atexit
import contextlib
import os
import stat
import subprocess
import sys
import tempfile
from fcntl import LOCK_EX, flock
from functools import cache
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from shutil import rmtree
from threading import RLock
from types import ModuleType, SimpleNamespace
from typing import Final

from squallpy.base.errors import SquallError
from squallpy.runtime.kernels.kernel_compiler import KERNELS, Kernel, NotCached

MOST: Final = 1_000  # modules in a folder
_NAME, _PACKAGE = "squallpy.runtime.compiled.code_cache", Path(__file__).parents[3]
_LOADING = RLock()


Functions = SimpleNamespace
"""Compiled functions by their names."""


def load_code(text: str, folder: Path | None = None) -> Functions:
    """Make the functions of printed code, compiled here, or taken from the disk.

    Where that is damaged, they are compiled anew.
    """
    return _load(write_code(text, folder or code_folder()))


def load_compiled_apart(text: str) -> Functions:
    """Make the functions of printed code, compiled by another process, or taken from the disk; OSError if it fails."""
    if (known := load_cached(text)) is not None:
        return known
    compiler = start_compiler(write_code(text, code_folder()), errors=subprocess.PIPE)
    try:
        told = compiler.communicate()[1].decode(errors="replace").strip().splitlines()
    finally:
        compiler.kill()
    if compiler.returncode:
        raise OSError(told[-1] if told else f"the compiler ended with {compiler.returncode}")
    if (made := load_cached(text)) is None:
        raise OSError("nothing was compiled")
    return made


def start_compiler(path: Path, niceness: int = 0, errors: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    """Start a process that compiles a module; in a group of its own, which Ctrl-C at a terminal does not reach."""
    line, nothing = [sys.executable, "-m", _NAME, str(path), str(niceness)], subprocess.DEVNULL
    return subprocess.Popen(line, cwd=str(_PACKAGE), stdin=nothing, stdout=nothing, stderr=errors, process_group=0)


def load_cached(text: str, folder: Path | None = None) -> Functions | None:
    """Make the functions of printed code if the disk has them compiled for this processor; None otherwise."""
    folder = folder or code_folder()
    if not _path_of(text, folder).is_file():
        return None
    path = write_code(text, folder)  # unless it is damaged, it is there
    try:
        return _compiled(path, only_cached=True)
    except NotCached:
        return None
    except (SquallError, MemoryError):
        raise
    except Exception:  # NB: as in `_load`
        _forget(path)
        return None


def _load(path: Path) -> Functions:
    try:
        return _compiled(path)
    except (SquallError, MemoryError):
        raise
    except Exception:  # NB: numba reads its files with pickle, which may raise anything
        _forget(path)
        return _compiled(path)


def _forget(path: Path) -> None:
    """Remove what is compiled of a module."""
    for found in path.parent.glob(f"__pycache__/{path.stem}*"):
        with contextlib.suppress(OSError):
            found.unlink()


def _compiled(path: Path, only_cached: bool = False) -> Functions:
    with _LOADING:
        module, functions = _module(path)
        try:
            for each in functions:
                each.load(only_cached)
            made = {each.__name__: each for each in (kernel.function for kernel in functions)}
        finally:
            # NB: numba keeps the names of a module for ever, and with them what they name
            sys.modules.pop(module.__name__, None)
            vars(module).clear()
    with contextlib.suppress(OSError):
        os.utime(path)  # it was used now
    return Functions(**made)


def _module(path: Path) -> tuple[ModuleType, list[Kernel]]:
    """Import printed code; its functions are not compiled yet."""
    spec = spec_from_file_location(f"squallpy_{path.stem}", path)
    assert spec and spec.loader
    module, first = module_from_spec(spec), len(KERNELS)
    sys.modules[module.__name__] = module  # NB: numba's cache looks for it there
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = written
    own = KERNELS[first:]
    del KERNELS[first:]
    return module, own


def _path_of(text: str, folder: Path) -> Path:
    """Return the file of a module."""
    return folder / f"triggers_{sha256(text.encode()).hexdigest()[:32]}.py"


def write_code(text: str, folder: Path) -> Path:
    """Write a module, at once, unless it is there."""
    path = _path_of(text, folder)
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        file, name = tempfile.mkstemp(dir=folder)
        with open(file, "w", encoding="utf-8") as sink:
            sink.write(text)
        os.replace(name, path)
        _remove_oldest(folder)
    return path


def _remove_oldest(folder: Path) -> None:
    """Remove the modules that were used longest ago, so that MOST are left."""
    with contextlib.suppress(OSError):  # NB: another process may do the same
        modules = sorted(folder.glob("triggers_*.py"), key=lambda path: path.stat().st_mtime_ns)
        for path in modules[:-MOST]:
            path.unlink()
            path.with_suffix(".lock").unlink(missing_ok=True)
            _forget(path)


@cache
def code_folder() -> Path:
    """Return the folder of modules: this user's cache, else one of this process alone."""
    home = os.environ.get("SQUALLPY_CODE_DIR") or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(home).expanduser() / "squallpy-triggers"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and os.access(folder, os.W_OK):
            if stat.S_IMODE(found.st_mode) != 0o700:
                folder.chmod(0o700)
            return folder
    except OSError:
        pass
    own = tempfile.mkdtemp(prefix="squallpy-triggers-")
    atexit.register(rmtree, own, ignore_errors=True)
    return Path(own)


def _load_alone(path: Path) -> None:
    """Compile a module, unless another process that does is waited for."""
    with open(path.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        flock(lock, LOCK_EX)
        _load(path)


if __name__ == "__main__":  # as `start_compiler` does
    os.nice(int(sys.argv[2]))
    _load_alone(Path(sys.argv[1]))
