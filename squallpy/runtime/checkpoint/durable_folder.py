"""Durable folders: the few file operations that state partitions need, on local disks and on any Arrow file system.

    folder = open_durable("s3://bucket/checkpoint/state/3")      or a plain path, or file:///…
    folder.write("snapshot/17", [b"…"])                          whole or not at all
    folder.append("log/18-ab", [b"…"])                           local disks only: see `appends`

Written files survive the death of any process; surviving a power cut is left to the file system.
"""

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol, cast

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import local_path

SMALL = 8 << 20  # bytes of an object that is written at once
STORES = ("s3", "gcs", "abfs")
"""Types of file systems whose files appear when they are complete, and that need no folders."""
_HOPELESS = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM}  # a retry does not help


class Durable(Protocol):
    """A folder; names within it may have one `/`. Writing raises SQ6006 if there is no room."""

    appends: bool  # True if files can be appended to

    def read(self, name: str) -> bytes | None:
        """Read a whole file; None if it does not exist."""
        try:
            with self.open(name) as source:
                return source.read()
        except FileNotFoundError:
            return None

    def open(self, name: str) -> IO[bytes]: ...

    def create(self, name: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file with `fill`; it appears when complete."""

    def append(self, name: str, parts: Iterable[bytes]) -> None: ...

    def list(self, folder: str) -> list[str]:
        """List the complete files, and the folders, of a folder, sorted."""

    def delete(self, name: str) -> None: ...

    def drop(self, folder: str) -> None:
        """Delete a folder with its contents, if it exists."""


@contextmanager
def reporting_no_room(folder: str) -> Iterator[None]:
    """Raise SQ6006 for errors of the operating system that retrying does not help."""
    try:
        yield
    except OSError as error:
        if error.errno not in _HOPELESS:
            raise
        where, why = error.filename or folder, (error.strerror or str(error)).lower()
        hint = "nothing is lost: the same command resumes when there is room"
        raise SquallError("SQ6006", f"cannot write state to {where}: {why}", hint=hint) from None


def open_durable(folder: str, writer: str = "") -> Durable:
    """Open the folder at a path or URI. Drafts are named after the `writer`, so that a kill leaves at most one."""
    if (local := local_path(folder)) is not None:
        return LocalDurable(local, writer)
    import pyarrow.fs as pafs  # NB: its import takes a twentieth of what a small run does

    files, path = pafs.FileSystem.from_uri(folder)
    return ArrowDurable(files, path, writer)


class LocalDurable(Durable):
    """A folder of this host (or a mounted one)."""

    appends = True

    def __init__(self, root: Path, writer: str) -> None:
        self._root, self._draft = f"{root}/", f".draft-{writer}"  # NB: paths as text, since a batch opens hundreds

    def open(self, name: str) -> IO[bytes]:
        return open(self._root + name, "rb")

    def create(self, name: str, fill: Callable[[IO[bytes]], object]) -> None:
        path = self._root + name
        draft = f"{os.path.dirname(path)}/{self._draft}"
        try:
            with reporting_no_room(path):
                with _open_file(draft, "wb") as sink:
                    fill(sink)
                os.replace(draft, path)
        except BaseException:  # NB: frees the space of an incomplete file on a full disk
            with suppress(OSError):
                os.unlink(draft)
            raise

    def append(self, name: str, parts: Iterable[bytes]) -> None:
        with reporting_no_room(self._root + name), _open_file(self._root + name, "ab", buffering=0) as file:
            for part in parts:
                rest = memoryview(part)
                while rest:
                    rest = rest[file.write(rest) :]

    def list(self, folder: str) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._root + folder) if not name.startswith("."))
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        with reporting_no_room(self._root + name), suppress(FileNotFoundError):
            os.unlink(self._root + name)

    def drop(self, folder: str) -> None:
        shutil.rmtree(self._root + folder, ignore_errors=True)


def _open_file(path: str, mode: str, buffering: int = -1) -> Any:
    """Open a file, and create its folder if it does not exist."""
    try:
        return open(path, mode, buffering)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, mode, buffering)


class HeldFile(io.BufferedIOBase):
    """A file that is held until it has more bytes than `most`, and then goes to the one that is opened."""

    def __init__(self, open_file: Callable[[], IO[bytes]], most: int) -> None:
        self._open_file, self._most = open_file, most
        self._file = None if most else open_file()
        self._size = 0
        self.held = bytearray()

    @property
    def is_small(self) -> bool:
        """True if no file was opened, as all bytes are held."""
        return self._file is None

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        octets = memoryview(part).cast("B")
        if self._file is None and len(self.held) + len(octets) > self._most:
            self._file = self._open_file()
            self._file.write(self.held)
        if self._file is None:
            self.held += octets
        else:
            self._file.write(octets)
        self._size += len(octets)
        return len(octets)

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


class ArrowDurable(Durable):
    """A folder of any Arrow file system. In stores of objects, which appear when complete, small ones have no draft."""

    appends = False

    def __init__(self, files: Any, root: str, writer: str) -> None:
        self._files, self._root, self._draft = files, root.rstrip("/"), f".draft-{writer}"

    def open(self, name: str) -> IO[bytes]:
        return cast(IO[bytes], self._files.open_input_file(f"{self._root}/{name}"))

    def create(self, name: str, fill: Callable[[IO[bytes]], object]) -> None:
        path = f"{self._root}/{name}"
        parent = path.rpartition("/")[0]
        draft, stores = f"{parent}/{self._draft}", self._files.type_name in STORES
        with reporting_no_room(path):
            if not stores:
                self._files.create_dir(parent, recursive=True)
            sink = HeldFile(lambda: self._files.open_output_stream(draft), SMALL if stores else 0)
            with sink:
                fill(cast(IO[bytes], sink))
            if sink.is_small:
                with self._files.open_output_stream(path) as file:
                    file.write(sink.held)
            else:
                self._files.move(draft, path)

    def append(self, name: str, parts: Iterable[bytes]) -> None:
        raise AssertionError("this file system does not append")

    def list(self, folder: str) -> list[str]:
        import pyarrow.fs as pafs

        found = self._files.get_file_info(pafs.FileSelector(f"{self._root}/{folder}", allow_not_found=True))
        return sorted(info.base_name for info in found if not info.base_name.startswith("."))

    def delete(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_file(f"{self._root}/{name}")

    def drop(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            self._files.delete_dir(f"{self._root}/{folder}")
