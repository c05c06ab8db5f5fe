"""Files of a path as they come and grow: what is new since the last look, at little cost.

listing = FolderListing("in/", base)
listing.look()   →   [File(in/1.csv, 4711 bytes), File(in/2.csv, …)]      new ones, and those that have changed
listing.look()   →   []
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import local_path
from squallpy.runtime.formats.relation_files import File, expand, local_file, remote_files

COST = (
    50  # a full look, at the size of every file, comes after so many times as long as the last one took: 2 % of a core
)
SECOND = 1_000_000_000  # ns
FRESH = SECOND // 20  # in which another file may get the same time of change


class FolderListing:
    """The files of a path so far: of a folder with those inside, of a glob, or one file.

    New names in a folder are found at once, by the folder's time of change; files that have grown when all are looked
    at, which takes long for many.
    """

    def __init__(self, path: str, base: Path, clock: Callable[[], float] = time.perf_counter) -> None:
        self._path, self._base, self._clock = path, base, clock
        self.seen = dict[str, tuple[int, int]]()
        """Size and time of change of the files so far, by path."""
        self._folders = dict[str, int]()  # times of change
        self._full_look = 0.0  # when
        self.missing = ""
        """The path, if nothing was there at the last full look."""

    def look(self) -> list[File]:
        """List new files and those that have changed, by time of change, then name."""
        start = self._clock()
        if start >= self._full_look:
            found = list(self._changed())
            end = self._clock()
            self._full_look = end + COST * (end - start)
        else:
            found = [file for folder in list(self._folders) for file in self._new_inside(folder)]
        return sorted(found, key=lambda file: (file.changed, file.path))

    def find(self, path: str) -> File | None:
        """Describe the file at a path or URI as it is now; None if it has gone."""
        if local_path(path) is not None:
            return next(_present(path), None)
        try:
            return next(iter(remote_files(path)))
        except SquallError:
            return None

    def _changed(self) -> Iterator[File]:
        """List all files that are new or have changed; none where there is nothing yet."""
        given, self.missing = local_path(self._path), ""
        if given is None:
            try:
                found = remote_files(self._path)
            except SquallError:  # NB: there may be none yet
                self.missing = self._path
                return
            for file in found:
                if self._note(file.path, file.size, file.changed):
                    yield file
            return
        places = [given] if given.is_absolute() else [self._base / given, Path.cwd() / given]
        place = next((place for place in places if place.exists()), places[0])
        if place.is_dir():
            yield from self._inside(str(place.absolute()))
            return
        paths = [str(each.absolute()) for each in expand(place)]
        self.missing = "" if paths else self._path
        for path in paths:
            yield from self._new(path)

    def _inside(self, folder: str) -> Iterator[File]:
        """List the files in a folder and below that are new or have changed."""
        folders, files = self._scan(folder)
        for path, about in files:
            if self._note(path, about.st_size, about.st_mtime_ns):
                yield from _present(path)
        for path in folders:
            yield from self._inside(path)

    def _new_inside(self, folder: str) -> Iterator[File]:
        """List the files with new names in a folder, if that has changed."""
        with suppress(OSError):  # NB: it may have gone
            if os.stat(folder).st_mtime_ns == self._folders[folder]:
                return
            before = os.path.join(folder, "")
            for name in os.listdir(folder):
                path = before + name
                if path in self.seen or path in self._folders or name.startswith(("_", ".")):
                    continue
                if os.path.isdir(path):
                    yield from self._inside(path)
                else:
                    yield from self._new(path)
            self._remember(folder)

    def _scan(self, folder: str) -> tuple[list[str], list[tuple[str, os.stat_result]]]:
        """List the folders and the files in a folder, and remember its time."""
        folders, files = list[str](), list[tuple[str, os.stat_result]]()
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(("_", ".")):
                    continue
                with suppress(OSError):
                    if entry.is_dir():
                        folders.append(entry.path)
                    else:
                        files.append((entry.path, entry.stat()))
            self._remember(folder)
        return folders, files

    def _remember(self, folder: str) -> None:
        """Remember a folder's time of change, unless another file may come with the same time."""
        changed = os.stat(folder).st_mtime_ns
        fresh = FRESH if changed % SECOND else 2 * SECOND  # NB: where times are of whole seconds
        self._folders[folder] = changed if time.time_ns() - changed > fresh else -1

    def _new(self, path: str) -> Iterator[File]:
        """Describe a file, if it is new or has changed."""
        for file in _present(path):
            if self._note(path, file.size, file.changed):
                yield file

    def _note(self, path: str, size: int, changed: int) -> bool:
        """Note the size and time of a file; True if they are new."""
        if self.seen.get(path) == (size, changed):
            return False
        self.seen[sys.intern(path)] = size, changed
        return True


def _present(path: str) -> Iterator[File]:
    """Describe a file, unless it has just gone."""
    with suppress(FileNotFoundError):
        yield local_file(Path(path))
