"""Files of a path as they come and grow: what is new since the last look, at little cost.

listing = FolderListing("in/", base)
listing.look()   →   [File(in/1.csv, 4711 bytes), File(in/2.csv, …)]      new ones, and those that have changed
listing.look()   →   []
"""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import local_path
from squallpy.runtime.formats.relation_files import File, expand, is_hidden, local_file, remote_files

COST = (
    50  # a full look, at the size of every file, comes after so many times as long as the last one took: 2 % of a core
)
FRESH = 1_000_000_000  # ns in which another file may get the same time of change


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

    def look(self) -> list[File]:
        """List new files and those that have changed, by time of change, then name."""
        start = self._clock()
        is_full = start >= self._full_look
        found = []
        for file in self._files() if is_full else self._new_files():
            about = file.size, file.changed
            if self.seen.get(file.path) != about:
                self.seen[file.path] = about
                found.append(file)
        if is_full:
            end = self._clock()
            self._full_look = end + COST * (end - start)
        return sorted(found, key=lambda file: (file.changed, file.path))

    def find(self, known: File) -> File | None:
        """Describe a file as it is now; None if it has gone."""
        if local_path(known.path) is not None:
            return next(_present(Path(known.path)), None)
        try:
            return next(iter(remote_files(known.path)))
        except SquallError:
            return None

    def _files(self) -> Iterator[File]:
        """List all files; none where there is nothing yet."""
        if (given := local_path(self._path)) is None:
            try:
                yield from remote_files(self._path)
            except SquallError:  # NB: there may be none yet
                return
        else:
            place = self._place(given)
            if place.is_dir():
                self._note_folder(place)
                for inside in place.rglob("*"):
                    if not is_hidden(inside.relative_to(place)) and inside.is_dir():
                        self._note_folder(inside)
            for path in expand(place):
                yield from _present(path)

    def _new_files(self) -> Iterator[File]:
        """List the files with new names in folders that have changed."""
        for folder, seen in list(self._folders.items()):
            try:
                if os.stat(folder).st_mtime_ns == seen:
                    continue
                self._note_folder(Path(folder))
                names = os.listdir(folder)
            except OSError:  # it has gone
                continue
            for name in names:
                path = Path(folder, name)
                if is_hidden(Path(name)) or str(path.absolute()) in self.seen:
                    continue
                if path.is_dir():
                    self._full_look = 0.0
                else:
                    yield from _present(path)

    def _note_folder(self, folder: Path) -> None:
        """Note a folder's time of change, unless it is so recent that another file may come with the same one."""
        changed = os.stat(folder).st_mtime_ns
        self._folders[str(folder)] = changed if time.time_ns() - changed > FRESH else -1

    def _place(self, given: Path) -> Path:
        """Choose where a relative path is: beside the script, or in the working directory."""
        places = [given] if given.is_absolute() else [self._base / given, Path.cwd() / given]
        return next((place for place in places if place.exists()), places[0])


def _present(path: Path) -> Iterator[File]:
    """Describe a file, unless it has just gone."""
    try:
        yield local_file(path)
    except FileNotFoundError:
        return
