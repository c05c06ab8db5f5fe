"""Files that a run writes, in one way: what exists and is no regular file is opened and written, links are followed.

write_whole(Path("r.csv"), lambda sink: …)      a draft, then a rename: whole or not at all
AppendedFile(Path("m.jsonl"))                   grows line by line; one run at a time
open_stream(Path("/dev/stdout"))                a FIFO, a device, a socket, a descriptor of this process

A regular file that is replaced keeps its mode. An existing one that is not to be written is left alone.
"""

import errno
import fcntl
import hashlib
import io
import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

from squallpy.base.errors import SquallError
from squallpy.runtime.sinks.protocol import writing

_LOCK_TAKEN = (errno.EWOULDBLOCK, errno.EACCES)


def open_stream(path: Path) -> IO[bytes] | None:
    """Open a path for writing if it is neither a regular file nor a folder; None if it is, or does not exist.

    NB: waits for the reader of a FIFO.
    """
    with writing(path):
        descriptor = _descriptor(path)
        if descriptor is not None:
            return os.fdopen(os.dup(descriptor), "wb", buffering=0)
        kind = _mode(path)
        if kind is None or stat.S_ISREG(kind) or stat.S_ISDIR(kind):
            return None
        return os.fdopen(os.open(path, os.O_WRONLY), "wb", buffering=0)


def is_stream(path: Path) -> bool:
    """True if a path is neither a regular file nor a folder; it is not opened."""
    with writing(path):
        kind = _mode(path)
        return _descriptor(path) is not None or (kind is not None and not stat.S_ISREG(kind) and not stat.S_ISDIR(kind))


def write_whole(path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write a file whole or not at all, or what `fill` writes to a stream; SQ7005 if that is not let."""
    stream = open_stream(path)
    if stream is not None:
        write_stream(stream, path, fill)
        with writing(path):
            stream.close()
        return
    with writing(path):
        target = _target(path)
        draft = target.with_name(f".squall-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}")
        try:
            with suppress(FileNotFoundError):
                draft.unlink()
            with draft.open("xb") as out:
                fill(out)
            if target.exists():
                shutil.copymode(target, draft)
            draft.replace(target)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise


def write_stream(stream: IO[bytes], path: Path, fill: Callable[[IO[bytes]], object]) -> None:
    """Write to a stream. NB: it cannot say where it is, as parquet wants to know."""
    with writing(path):
        whole = io.BytesIO()
        fill(whole)
        _write(stream, whole.getvalue())


def check_writable(path: Path, makes_folder: bool = False) -> None:
    """Raise SQ7005 early for a file that cannot be written; its folder is made, or has to exist."""
    with writing(path):
        if makes_folder:
            path.parent.mkdir(parents=True, exist_ok=True)
        elif not path.parent.is_dir():
            raise SquallError("SQ7005", f"cannot write {path}: no folder {path.parent}", hint="make it first")
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        target = path if is_stream(path) else _target(path)
        if not os.access(target if target.exists() else target.parent, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


class AppendedFile:
    """A file that lines are added to, by one run at a time."""

    def __init__(self, path: Path) -> None:
        check_writable(path)
        self._path, self._stream = path, open_stream(path)
        with writing(path):
            self._file = self._stream or os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b", buffering=0)
            if self._stream is None:
                lock(self._file.fileno(), path)

    def read(self) -> bytes:
        """Read all that the file has; nothing of a stream."""
        if self._stream is not None:
            return b""
        with writing(self._path):
            self._file.seek(0)
            return self._file.read()

    def rewrite(self, data: bytes) -> None:
        """Replace the contents of the file; a stream gets them appended."""
        with writing(self._path):
            if self._stream is None:
                self._file.seek(0)
            _write(self._file, data)
            if self._stream is None:
                self._file.truncate()

    def append(self, data: bytes) -> None:
        """Add to the end."""
        with writing(self._path):
            _write(self._file, data)

    def close(self) -> None:
        """Let others write it."""
        with writing(self._path):
            self._file.close()


def lock(descriptor: int, path: Path) -> None:
    """Keep other runs from a file or folder as long as it is open; SQ7005 if one has it. Where a file system has no
    locks, nothing."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _LOCK_TAKEN:
            raise SquallError("SQ7005", f"another run writes {path}", hint="name another, or wait for it") from None


def _write(file: IO[bytes], data: bytes) -> None:
    """Write all of it to an unbuffered file."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _mode(path: Path) -> int | None:
    """Read the mode of a path, links followed; None if nothing is there."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _descriptor(path: Path) -> int | None:
    """Read the number of this process's descriptor that a path names, as /dev/stdout and /dev/fd/63 do."""
    for _ in range(40):  # links on the way, as many as Linux follows
        folder = os.path.realpath(path.parent)
        if folder == f"/proc/{os.getpid()}/fd" and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, os.readlink(path))
    return None


def _target(path: Path) -> Path:
    """Follow a path to the regular file, present or to come."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    return target
