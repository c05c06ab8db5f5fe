"""`squall doctor`: checks of what a run needs, without starting anything.

ok  Python 3.11.2
✗   Java: Spark needs Java 17 or newer, found none …, install one (…) or set JAVA_HOME
"""

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import squallpy
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass

_PYTHON = (3, 11)
_PACKAGES = {"pyspark": (4, 2), "pyarrow": (18,), "numba": (0, 61), "numpy": (2,), "sqlglot": (30,)}
_MEMORY, _ROOM = 2 << 30, 256 << 20  # bytes below which even small runs may fail


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; a failed check has a next step."""

    ok: bool
    text: str

    def __str__(self) -> str:
        return f"{'ok' if self.ok else '✗ '}  {self.text}"


def examine() -> list[Finding]:
    """List all findings, in the order in which to mend things."""
    return [finding for look in (_python, _java, _packages, _kernels, _memory, _folders) for finding in look()]


def _python() -> Iterator[Finding]:
    needed = ".".join(map(str, _PYTHON))
    ok = sys.version_info[:2] >= _PYTHON
    yield Finding(ok, f"Python {platform.python_version()}" + ("" if ok else f": install {needed} or newer"))


def _java() -> Iterator[Finding]:
    from squallpy.runtime.spark.java import find_java

    try:
        yield Finding(True, str(find_java()))
    except SquallError as error:
        yield Finding(False, f"Java: {error.message}, {error.hint}; --backend local does without")


def _packages() -> Iterator[Finding]:
    for name, least in _PACKAGES.items():
        wanted = f"{name}>={'.'.join(map(str, least))}"
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding(False, f'{name} is not installed: pip install "{wanted}"')
            continue
        ok = _numbers(version) >= least
        yield Finding(ok, f"{name} {version}" + ("" if ok else f': pip install "{wanted}"'))


def _numbers(version: str) -> tuple[int, ...]:
    """Read the numbers of a version: `4.2.0rc1` → (4, 2)"""
    parts = version.split(".")
    return tuple(int(part) for part in parts[: next((i for i, p in enumerate(parts) if not p.isdigit()), len(parts))])


def _kernels() -> Iterator[Finding]:
    """Find where numba keeps the compiled kernels, in its own order of choice."""
    beside = Path(squallpy.__file__).parent / "runtime" / "kernels" / "__pycache__"
    given = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(given) if given else beside
    count = sum(1 for _ in folder.rglob("*.nbc"))
    if count:
        yield Finding(True, f"{count} compiled kernels in {folder}")
    elif _writable(folder) or not given:
        yield Finding(True, "no compiled kernels yet: the first run compiles them, once")
    else:
        hint = "point NUMBA_CACHE_DIR to a folder that is"
        yield Finding(False, f"compiled kernels cannot be kept, {folder} is not writable: {hint}")


def _memory() -> Iterator[Finding]:
    try:
        size = os.sysconf("SC_PAGE_SIZE")
        total, free = os.sysconf("SC_PHYS_PAGES") * size, os.sysconf("SC_AVPHYS_PAGES") * size
    except (OSError, ValueError, AttributeError):  # NB: not on every system
        yield Finding(True, "memory: this system does not say how much")
        return
    ok = total >= _MEMORY
    text = f"{_size(total)} of memory, {_size(free)} free"
    yield Finding(ok, text + ("" if ok else f": Spark and its workers want {_size(_MEMORY)}"))


def _folders() -> Iterator[Finding]:
    yield _folder("temporary folder", Path(tempfile.gettempdir()), "set TMPDIR to a folder with room")
    shared = Path("/dev/shm")
    if shared.is_dir():
        yield _folder("shared memory", shared, "--set local_dir=FOLDER keeps state elsewhere")


def _folder(name: str, folder: Path, hint: str) -> Finding:
    if not _writable(folder):
        return Finding(False, f"{name} {folder} is not writable: {hint}")
    free = shutil.disk_usage(folder).free
    return Finding(free >= _ROOM, f"{name} {folder}, {_size(free)} free" + ("" if free >= _ROOM else f": {hint}"))


def _writable(folder: Path) -> bool:
    """True if a file can be made there, or in a folder that would have to be made first."""
    while not folder.exists():
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB" if count >= 1 << 30 else f"{count >> 20} MB"
