"""Files that come and grow, as a source without end.

    source.latest({"row": 0}, Limit(rows=100))    looks at the folder  →  {"row": 60}, after a file of 60 rows has come

Rows are numbered in the order in which they were seen: what is appended to a file is one more piece, behind those of
other files. What is known of a file does not change: its last line counts when it has its end, a file that is replaced
or becomes shorter is refused, and one that goes after it was read leaves its rows. Parquet and compressed files count
when they are whole.
"""

import sys
import time
from bisect import bisect_left, bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.catalog.relation import Relation
from squallpy.runtime.formats.compression import named_codec
from squallpy.runtime.formats.relation_files import File
from squallpy.runtime.sources.file_piece import FilePiece, LoggedPiece, end_checksum
from squallpy.runtime.sources.folder_listing import FolderListing
from squallpy.runtime.sources.protocol import Backlog, BatchLimit, Offset, Source
from squallpy.runtime.sources.source import FileSource, RowRange, SourceFile, check_columns, fields_read, open_part

PATIENCE = 10.0  # seconds after its last change in which a file that is read whole gets its end
OPEN = 64  # files that grow without being scanned anew


@dataclass(frozen=True, slots=True)
class ReadColumns:
    """Columns that batches have read of a source, and the checksums of what they read, by the number of the piece."""

    columns: Sequence[str]
    sums: Mapping[int, int]


class Known(NamedTuple):
    """The part of a file that is known, in bytes and rows, with a checksum of its last bytes."""

    size: int
    rows: int
    end: int


class WatchedFiles(Source):
    """The files of a relation, looked at again and again.

    Pieces that batches have read are forgotten; of their files what tells whether they are still the same stays.

    Args:
        with_checksum: Tables that are read carry the checksums of their pieces.
    """

    def __init__(self, relation: Relation, base: Path, with_checksum: bool = False) -> None:
        self.relation, self._with_checksum = relation, with_checksum
        self._listing = FolderListing(relation.options["path"], base)
        self._pieces, self._starts, self._dropped = list[FilePiece](), [0], 0
        self._known, self._open = dict[str, Known](), OrderedDict[str, SourceFile]()
        self._committed = 0  # rows of batches before the last
        self._unfinished = list[File]()  # files that are still being written
        self._columns: Sequence[str] = ()
        self.keeps_pieces = False  # all that was read may be read again

    @property
    def rows(self) -> int:
        """The number of rows that were seen."""
        return self._starts[-1]

    @property
    def pieces(self) -> int:
        """The number of pieces that were seen."""
        return self._dropped + len(self._pieces)

    def check(self, columns: Sequence[str]) -> None:
        """Check these columns, which are read, in all files from now on; SQ4002."""
        self._columns = columns
        for piece in self._pieces:
            self._check(piece)

    def initial(self) -> Offset:
        return {"row": 0}

    def latest(self, start: Offset, limit: BatchLimit) -> Offset:
        found = {file.path: file for file in (*self._unfinished, *self._listing.look())}
        self._unfinished = []
        for file in found.values():
            self._take(file)
        end = self.rows if limit.rows is None else min(self.rows, start["row"] + limit.rows)
        if (most := self.relation.options.get("maxfilespertrigger")) is not None:
            first = bisect_right(self._starts, start["row"]) - 1
            end = min(end, self._starts[min(first + int(most), len(self._pieces))])
        if (size := self.relation.options.get("maxbytespertrigger")) is not None:
            end = min(end, self._row_within(start["row"], int(size)))
        return {"row": end}

    def _row_within(self, start: int, size: int) -> int:
        """Find the row up to which about so many bytes are, at least one row, by the average of each file's rows."""
        row, left = start, float(size)
        for number in range(bisect_right(self._starts, start) - 1, len(self._pieces)):
            piece = self._pieces[number]
            average = piece.file.size / piece.stop
            rows = self._starts[number + 1] - row
            if rows * average > left:
                return max(row + int(left / average), start + 1)
            row, left = row + rows, left - rows * average
        return row

    def split(self, start: Offset, end: Offset, tasks: int) -> Sequence[RowRange]:
        first = bisect_right(self._starts, start["row"]) - 1
        last = max(first, bisect_left(self._starts, end["row"]))
        begin = self._starts[first]
        number = self._dropped + first
        pieces = FileSource(self.relation, tuple(self._pieces[first:last]), self._with_checksum, number, begin)
        return pieces.split({"row": start["row"] - begin}, {"row": end["row"] - begin}, tasks)

    @property
    def waits_for(self) -> str:
        return self._listing.missing

    def backlog(self, end: Offset) -> Backlog:
        unread = self.rows - end["row"]
        return Backlog(unread, self._piece_at(end["row"]).file.changed / 1e9 if unread else None)

    def committed(self, start: Offset, end: Offset) -> float | None:
        return self._piece_at(start["row"]).file.changed / 1e9 if start != end else None

    def _piece_at(self, row: int) -> FilePiece:
        """Find the piece that has a row."""
        return self._pieces[bisect_right(self._starts, row) - 1]

    def commit(self, end: Offset) -> None:
        self.forget({"row": self._committed})  # NB: the last batch is still reported on
        self._committed = end["row"]

    def forget(self, end: Offset) -> None:
        """Forget pieces before a place, unless they are read again."""
        if self.keeps_pieces:
            return
        count = max(0, min(bisect_right(self._starts, end["row"]) - 1, len(self._pieces) - 1))
        if count:
            del self._pieces[:count], self._starts[:count]
            self._dropped += count

    def logged(self, first: int) -> list[LoggedPiece]:
        """Return the pieces from a number on, which are not forgotten, as they are logged."""
        assert first >= self._dropped, f"pieces from {first} on, and {self._dropped} are forgotten"
        return [piece.logged for piece in self._pieces[first - self._dropped :]]

    def restore(self, pieces: Iterable[LoggedPiece], end: Offset) -> None:
        """Take up pieces that were logged, as far as batches have begun to read them."""
        for logged in pieces:
            if self.rows >= end["row"]:
                break
            piece = FilePiece.restore(self.relation, logged)
            self._add(piece)
            self._listing.seen[sys.intern(piece.file.path)] = piece.seen, piece.file.changed

    def history(self, end: Offset) -> FileSource:
        """Return the rows of files before a place, numbered by files; SQ6009 if a file that has some is gone."""
        unread, parts = Counter[str](), list[SourceFile]()
        for piece, start in zip(self._pieces, self._starts, strict=False):
            unread[piece.file.path] += max(0, start + piece.rows - max(start, end["row"]))
        for path, known in self._known.items():
            rows, file = known.rows - unread[path], self._listing.find(path)
            if rows and file is None:
                message = f"{path} has been read and is gone, and a new view needs its rows"
                raise SquallError(
                    "SQ6009", message, self.relation.span, "bring it back, or create views before files go"
                )
            if rows and file:
                part = open_part(self.relation, replace(file, size=known.size))
                parts.append(FilePiece(self.relation, part.file, 0, rows, known.end, known.size))
        return FileSource(self.relation, tuple(parts))

    def find_missing(self) -> str:
        """Name a file that was read and is gone; empty if all are there."""
        gone = next((path for path in self._known if self._listing.find(path) is None), "")
        return next((piece.file.display_name for piece in self._pieces if piece.file.path == gone), gone)

    def compare(self, read: ReadColumns, done: Offset, folder: str) -> None:
        """Compare files that have another size or time by now with the checksums of what was read of them; SQ6001."""
        found = {path: self._listing.find(path) for path in self._known}
        for number, (piece, start) in enumerate(zip(self._pieces, self._starts, strict=False)):
            path, rows = piece.file.path, max(0, min(piece.rows, done["row"] - start))
            now = found[path]
            if now and (now.size, now.changed) == self._listing.seen[path]:
                continue
            if now is None and rows == piece.rows:
                continue  # NB: a file that was read to its end may go
            same = now and now.size >= piece.file.size and end_checksum(piece.file.size, now) == piece.end
            if now and same:
                self._pieces[number] = again = replace(piece, file=replace(piece.file, changed=now.changed))
                same = not rows or again.checksum(rows, read.columns) == read.sums.get(number, 0)
            if not same:
                message = f"{piece.file.display_name} has changed since the checkpoint {folder} read it"
                raise SquallError("SQ6001", message, hint="choose another folder to start over")

    def _take(self, file: File) -> None:
        """Add what is new of a file as a piece; one that is written meanwhile is looked at again."""
        known = self._known.get(file.path)
        try:
            part = self._grow(file, known) if known else self._begin(file)
            piece = FilePiece.of(self.relation, part, known.rows if known else 0, file.size) if part else None
        except SquallError:
            now = self._listing.find(file.path)
            if now and (now.size, now.changed) == (file.size, file.changed):
                raise
            self._unfinished += [now] if now else []
            return
        if piece is None or part is None:
            return
        self._keep_open(file.path, part)
        if piece.rows:
            self._check(piece)
            self._add(piece)
        else:
            self._note(piece)

    def _add(self, piece: FilePiece) -> None:
        self._note(piece)
        self._pieces.append(piece)
        self._starts.append(self.rows + piece.rows)

    def _note(self, piece: FilePiece) -> None:
        """Note what is known of a file."""
        self._known[sys.intern(piece.file.path)] = Known(piece.file.size, piece.stop, piece.end)

    def _keep_open(self, path: str, part: SourceFile) -> None:
        """Keep an open file, and a few others that have changed last."""
        self._open[path] = part
        self._open.move_to_end(path)
        if len(self._open) > OPEN:
            self._open.popitem(last=False)

    def _begin(self, file: File) -> SourceFile | None:
        """Open a new file; None while it is only half written."""
        if not file.size:
            return None
        try:
            part = open_part(self.relation, file)
        except SquallError as error:
            if error.code == "SQ8009" or not self._is_whole(file) or time.time() - file.changed / 1e9 > PATIENCE:
                raise
            self._unfinished.append(file)
            return None
        return part if part.columns or part.rows else None

    def _grow(self, file: File, known: Known) -> SourceFile | None:
        """Return a file with what was appended to it, if anything was; SQ6001 if what is known of it has changed."""
        same = file.size >= known.size and end_checksum(known.size, file) == known.end
        if same and file.size == known.size:
            return None
        if same and not self._is_whole(file):
            part = self._open.get(file.path)
            return part.grown(file) if part else open_part(self.relation, file)
        message = f"{file.display_name} has changed since it was read"
        hint = "add other files" if self._is_whole(file) else "append to the files of a watched folder, or add others"
        raise SquallError("SQ6001", message, hint=hint)

    def _is_whole(self, file: File) -> bool:
        """True if a file is read once it is whole."""
        codec = named_codec(file, self.relation.options.get("compression", ""))
        return self.relation.format in ("parquet", "avro") or codec != ""

    def _check(self, piece: FilePiece) -> None:
        """Compare a file with the declared columns, and those that are read; SQ4002."""
        try:
            check_columns(self.relation, piece)
            piece.check_read(fields_read(self.relation, self._columns))
        except SquallError as error:
            raise error.at(self.relation.span) from None
