"""The package as an archive that executors unpack: this source, its grammars and compiled kernels included.

    spark-submit --archives squallpy-0.1.0-3f….zip#squallpy-0.1.0 --conf spark.executorEnv.PYTHONPATH=squallpy-0.1.0 …

An archive and no --py-files: a worker is forked from a process of Squall, which does not get those, and numba cannot
cache compiled kernels (a minute of work) in a zip. On a different kind of processor kernels are compiled again.
"""

import os
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import squallpy
from squallpy import __version__
from squallpy.frontend.grammars import grammar_path
from squallpy.runtime.kernels.kernel_precompilation import compile_missing

UNPACKED = f"squallpy-{__version__}"  # in the folder in which an executor runs
_KEPT = 8  # archives to keep, the last used: a running query may still serve one of another version
_KINDS = (".py", ".lark", ".properties", ".nbi", ".nbc")


def cache_folder() -> Path:
    """Choose the folder for files that can be made again: the virtual environment's, or the user's cache."""
    if sys.prefix != sys.base_prefix:
        return Path(sys.prefix) / "share" / "squallpy"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "squallpy"


def package_archive(folder: Path | None = None) -> Path:
    """Make the archive unless it exists: its name is the digest of its contents.

    Kernels are compiled first, or each executor would do that, and again when one is replaced.
    """
    compile_missing()
    folder, contents, digest = folder or cache_folder(), list(_contents()), sha256()
    for name, data in contents:
        digest.update(f"{name} {len(data)} ".encode() + data)
    path = folder / f"{UNPACKED}-{digest.hexdigest()[:12]}.zip"
    if not path.exists():
        size = sum(len(data) for _, data in contents)
        start = "\r" if sys.stderr.isatty() else ""  # NB: overwrites the progress line, which is shorter
        sys.stderr.write(f"{start}squallpy: packing {len(contents)} files, {size / 1e6:.0f} MB, for executors\n")
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{uuid4().hex}")  # NB: hosts that share the folder have processes of one number
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in contents:
                archive.writestr(name, data)
        draft.replace(path)
    path.touch()
    for old in sorted(folder.glob(f"{UNPACKED}-*.zip"), key=_last_used)[:-_KEPT]:
        old.unlink(missing_ok=True)
    return path


def _last_used(archive: Path) -> float:
    """Return when a run has used an archive; 0 for one that another run has deleted meanwhile."""
    try:
        return archive.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _contents() -> Iterator[tuple[str, bytes]]:
    root, grammar = Path(squallpy.__file__).parent, grammar_path("script").parent
    for file in sorted(path for path in root.rglob("*") if path.suffix in _KINDS):
        yield f"squallpy/{file.relative_to(root)}", file.read_bytes()
    if not grammar.is_relative_to(root):  # NB: in a repository it is next to the package
        for file in sorted(grammar.glob("*.lark")):
            yield f"squallpy/grammar/{file.name}", file.read_bytes()
