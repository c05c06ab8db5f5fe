"""A folder of this host, or of any Arrow file system, into which a run writes files that appear whole.

folder = OutputFolder("s3://bucket/out")        or a path of this host
folder.write("batch-000007.csv", fill)          a draft, then a rename; in a store of objects one request
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa
import pyarrow.fs as pafs

from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint.durable_folder import SMALL, STORES, HeldFile
from squallpy.runtime.checkpoint.lease import hold_shared
from squallpy.runtime.sinks.output_file import lock

DRAFT = ".squall-draft"  # NB: hidden from all that read the folder
_REFUSED = (OSError, ImportError, ValueError, pa.ArrowException)


class OutputFolder:
    """A folder by its path or URI, which exists from then on; SQ7005 if it cannot.

    Args:
        draft: The name of its drafts, where several processes write.
    """

    def __init__(self, place: Path | str, draft: str = DRAFT) -> None:
        self._place, self._local, self._draft = place, isinstance(place, Path), draft
        with writing_to(place):
            if isinstance(place, Path):
                if place.exists() and not place.is_dir():
                    hint = "changes are written to a folder, a file for each batch"
                    raise SquallError("SQ7005", f"{place} is a file", hint=hint)
                # NB: Arrow encodes text as UTF-8, but a local name may be other bytes
                self._files, self._root = pafs.LocalFileSystem(), os.fsencode(place.absolute())
            else:
                self._files, root = pafs.FileSystem.from_uri(place)
                self._root = os.fsencode(root.rstrip("/"))
            self._files.create_dir(self._root, recursive=True)
        self._is_store = self._files.type_name in STORES
        self._held: bytearray | None = None

    def __str__(self) -> str:
        return str(self._place)

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        """Keep other runs from the folder, SQ7005 if one has it; gives a check that no other has taken it since."""
        if not self._local:
            with ExitStack() as opened:
                with renaming(self):
                    lease = opened.enter_context(hold_shared(str(self)))

                def check() -> None:
                    with renaming(self):
                        lease.check()

                yield check
            return
        with writing_to(self):
            held = os.open(self._root, os.O_RDONLY)
        try:
            lock(held, Path(str(self)))
            yield lambda: None
        finally:
            os.close(held)

    def read(self, name: str) -> bytes | None:
        """Read a whole file; None if it does not exist."""
        try:
            with self.open(name) as source:
                return source.read()
        except FileNotFoundError:
            return None

    def open(self, name: str) -> IO[bytes]:
        return cast(IO[bytes], self._files.open_input_stream(self._path(name), compression=None))

    def write(self, name: str, fill: Callable[[IO[bytes]], object]) -> None:
        """Write a file, which appears when it is complete."""
        self.draft(fill)
        self.publish(name)

    def draft(self, fill: Callable[[IO[bytes]], object]) -> None:
        """Write the draft, in place of an earlier one.

        NB: a store of objects moves by copying, so that a small one is held here until it is published.
        """
        self._held = None
        try:
            if self._is_store:
                with HeldFile(lambda: self._open(self._draft), SMALL) as held:
                    fill(cast(IO[bytes], held))
                self._held = held.held if held.is_small else None
            else:
                with self._open(self._draft) as sink:
                    fill(sink)
        except BaseException:  # NB: frees the space of an incomplete file on a full disk
            self.delete(self._draft)
            raise

    def publish(self, name: str) -> None:
        """Give the draft its name."""
        if self._held is not None:
            with self._open(name) as sink:
                sink.write(self._held)
            self._held = None
            return
        if "/" in name and not self._is_store:
            self._files.create_dir(self._path(name.rpartition("/")[0]), recursive=True)
        self.move(self._draft, name)

    def move(self, name: str, to: str) -> None:
        """Give a file another name, in place of one that has it."""
        self._files.move(self._path(name), self._path(to))

    def exists(self, name: str) -> bool:
        """True if there is a file of that name."""
        return bool(self._files.get_file_info([self._path(name)])[0].type == pafs.FileType.File)

    def list(self, below: str = "") -> list[str]:
        """List the names of files in the folder, or in one inside."""
        place = self._path(below) if below else self._root
        found = self._files.get_file_info(pafs.FileSelector(place, allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == pafs.FileType.File)

    def delete(self, name: str) -> None:
        with suppress(OSError):  # NB: it may have gone
            self._files.delete_file(self._path(name))

    def _open(self, name: str) -> IO[bytes]:
        return cast(IO[bytes], self._files.open_output_stream(self._path(name), compression=None))

    def _path(self, name: str) -> Any:
        return self._root + b"/" + name.encode()


@contextmanager
def writing_to(place: object, what: str = "") -> Iterator[None]:
    """Raise SQ7005 for an error of a file system, of which one line is said."""
    try:
        yield
    except BrokenPipeError:
        raise
    except _REFUSED as error:
        raise SquallError("SQ7005", f"cannot write {what}{place}: {_reason(error)}", hint=_hint(error)) from None


def _reason(error: Exception) -> str:
    number = getattr(error, "errno", None)
    return (os.strerror(number) if number else str(error).partition("\n")[0]).lower()


def _hint(error: Exception) -> str:
    full = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    return "make room, and run the same command again" if full else ""


@contextmanager
def renaming(place: object) -> Iterator[None]:
    """Raise SQ7005 for the error of a lease, which is of a sink's folder here, not of a checkpoint."""
    try:
        yield
    except SquallError as error:
        if error.code not in ("SQ6007", "SQ6008"):
            raise
        raise SquallError("SQ7005", f"another run writes {place}", hint="name another, or wait for it") from None
