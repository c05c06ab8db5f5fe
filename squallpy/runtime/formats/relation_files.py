"""The files of a relation, by its `path`, in the order in which they are read."""

import difflib
import glob
import os
import socket
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import join_path, local_path, scheme_of, show_uri
from squallpy.base.records import dataclass


@dataclass(frozen=True, slots=True)
class File:
    """A file as found; its size and time of change show whether it is still the same."""

    path: str  # absolute, or a URI of any Arrow filesystem
    size: int
    changed: int  # ns since 1970
    display_name: str  # its name in messages
    host: str = ""  # on the host that lists it; another host may have its own copy by that name

    def open(self) -> Any:
        """Open for random access by pyarrow; SQ4001 if it cannot be read or has become shorter."""
        import pyarrow as pa

        try:
            if scheme_of(self.path):
                system, path = locate(self.path)
                file = system.open_input_file(path)
            else:
                file = pa.OSFile(os.fsencode(self.path))  # NB: Arrow encodes text as UTF-8, a name may be other bytes
            size = file.size()
        except OSError as error:
            raise SquallError("SQ4001", f"cannot read {self.display_name}: {reason(error)}") from None
        if size < self.size:
            file.close()
            raise SquallError("SQ4001", f"{self.display_name} became shorter while it was read")
        self.check()
        return file

    def touched(self) -> "File | None":
        """Describe a local file that has the same size, and another time of change; None if it has not.

        SQ4001 if it cannot be read.
        """
        if self.host != socket.gethostname():
            return None
        try:
            about = os.stat(self.path)
        except OSError as error:
            raise SquallError("SQ4001", f"cannot read {self.display_name}: {reason(error)}") from None
        is_touched = about.st_size == self.size and about.st_mtime_ns != self.changed
        return replace(self, changed=about.st_mtime_ns) if is_touched else None

    def check(self) -> None:
        """Raise SQ4001 if a local file was replaced or overwritten; one that has grown is still valid."""
        if self.touched():
            raise SquallError(
                "SQ4001", f"{self.display_name} was written while it was read", hint="run the query again"
            )


def locate(uri: str) -> tuple[Any, str]:
    """Resolve a URI to an Arrow filesystem and the path in it."""
    from pyarrow import fs

    return fs.FileSystem.from_uri(uri)  # type: ignore[no-any-return]


def reason(error: Exception) -> str:
    """Describe in a few words why a file could not be read."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return (str(error).splitlines() or [type(error).__name__])[0]


def find_files(path: str, base: Path) -> list[File]:
    """List the files of `path`, sorted by name: one file, those of a folder, or those of a glob.

    A relative path is looked up in `base`, the folder of the script, then in the working directory. Raises SQ4001.
    """
    try:
        given = local_path(path)
    except ValueError as error:
        raise SquallError("SQ4001", f'cannot read "{path}": {error}') from None
    if given is None:
        return remote_files(path)
    places = [given] if given.is_absolute() else [base / given, Path.cwd() / given]
    for place in places:
        try:
            found = [local_file(p) for p in expand(place)]
        except OSError as error:
            raise SquallError("SQ4001", f'cannot read "{path}": {reason(error)}') from None
        if found:
            return found
        if place.is_dir():
            raise SquallError("SQ4001", f"the folder {show(place)} has no files")
    raise SquallError("SQ4001", f'no file "{path}"', hint=_suggest_file(given, places))


def _suggest_file(given: Path, places: list[Path]) -> str:
    """Suggest the file that may have been meant, or where the missing one belongs."""
    beside = [Path(p) for place in places for p in glob.glob(f"{glob.escape(str(place.parent))}/[!_]*")]
    names = {p.stem: p.name for p in beside}
    close = difflib.get_close_matches(given.stem, names, n=1)
    if close:
        return f'did you mean "{given.with_name(names[close[0]])}"?'
    looked = " or ".join(dict.fromkeys(show(p.parent) for p in places))
    return f"put it into {looked}, or change OPTIONS (path '…')"


def expand(place: Path) -> list[Path]:
    if place.is_dir():
        return sorted(p for p in place.rglob("*") if p.is_file() and not is_hidden(p.relative_to(place)))
    if place.exists():
        return [place]
    if glob.has_magic(str(place)):
        return sorted(p for p in map(Path, glob.glob(str(place), recursive=True)) if p.is_file())
    return []


def is_hidden(path: Path) -> bool:
    """True if a file such as _SUCCESS or .part-0.crc is not data."""
    return any(part.startswith(("_", ".")) for part in path.parts)


def local_file(path: Path) -> File:
    about = path.stat()
    if not stat.S_ISREG(about.st_mode):  # NB: its size is unknown, and it cannot be read twice
        raise SquallError("SQ4001", f"{show(path)} is not a regular file", hint="write its output to a file first")
    return File(str(path.absolute()), about.st_size, about.st_mtime_ns, show(path), socket.gethostname())


def show(path: Path) -> str:
    """Format a path, relative to the working directory if it lies below it."""
    path = Path(os.path.normpath(path.absolute()))
    relative = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return os.fsencode(relative).decode(errors="backslashreplace")


def remote_files(uri: str) -> list[File]:
    """List the files of a URI: one, or those of a folder. Raises SQ4001; globs are for local files."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, path = locate(uri)
        about = system.get_file_info(path)
        if about.type == fs.FileType.Directory:
            inside = system.get_file_info(fs.FileSelector(path, recursive=True))
            below = sorted((i for i in inside if i.type == fs.FileType.File), key=lambda i: str(i.path))
            infos = [i for i in below if not is_hidden(Path(os.path.relpath(i.path, path)))]
        else:
            infos = [about] if about.type == fs.FileType.File else []
    except (OSError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SquallError("SQ4001", f'cannot read "{show_uri(uri)}": {reason(error)}') from None
    if not infos:
        raise SquallError("SQ4001", f'no file "{show_uri(uri)}"')
    names = [uri if i.path == path else join_path(uri, os.path.relpath(i.path, path)) for i in infos]
    return [File(name, i.size, i.mtime_ns or 0, show_uri(name)) for name, i in zip(names, infos, strict=True)]
