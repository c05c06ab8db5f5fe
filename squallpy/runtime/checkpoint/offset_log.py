"""The log of offsets: what a batch reads is written before, so that one that is tried again reads the same.

    offsets          {"batch": 7, "spans": {"f": [{"row": 700}, {"row": 800}]}}        of the last batch,
                     and processing "times" of streams that have any
    seen-5c…-12      the pieces of files from number 12 on that stream f was found to have

It is in the generation's folder of a checkpoint, beside the number of committed batches.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import pairwise, takewhile
from typing import IO

from squallpy.runtime.checkpoint.checksummed_record import damaged_error, read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import open_durable
from squallpy.runtime.sources.arrivals import Decision
from squallpy.runtime.sources.file_piece import LoggedPiece
from squallpy.runtime.sources.stream_times import StreamTime
from squallpy.runtime.sources.watched_files import WatchedFiles

_OFFSETS, _SEEN = "offsets", "seen"
MERGED = 16  # small records of pieces that are merged into one
LEVELS = 3  # of sizes, each MERGED times as large: so many times are pieces written anew


class OffsetLog:
    """The log of a query's streams in the durable folder at a path or URI.

    Args:
        watched: The sources whose rows are numbered by the pieces of files that they have seen.
    """

    def __init__(self, durable: str, watched: Mapping[str, WatchedFiles]) -> None:
        self._path, self._folder, self._watched = durable, open_durable(durable, "driver"), watched
        self._records = {name: self._list(name) for name in watched}
        self._written = dict.fromkeys(watched, 0)

    def restore(self) -> Decision | None:
        """Return the last batch that was logged, and let the sources know what they had seen; SQ6005 if damaged."""
        text = read_record(self._folder, _OFFSETS, self._path)
        if text is None:
            return None
        found = json.loads(text)
        spans = {name: (start, end) for name, (start, end) in found["spans"].items()}
        for name, source in self._watched.items():
            source.restore(self._read(name, self._records[name]), spans[name][1])
            self._written[name] = source.pieces
        times = {name: StreamTime(**time) for name, time in found.get("times", {}).items()}
        return Decision(found["batch"], spans, times)

    def take_over(self, before: "OffsetLog") -> None:
        """Begin with the pieces that the log of another generation has."""
        copy_log(before._path, self._path)
        for name in self._watched.keys() & before._watched.keys():
            self._records[name], self._written[name] = self._list(name), before._written[name]

    def write(self, decision: Decision) -> None:
        """Log a batch, and before it the pieces of files that it begins to read."""
        for name, source in self._watched.items():
            if source.pieces > self._written[name]:
                self._write_pieces(name, source.logged(self._written[name]))
        times = {name: asdict(time) for name, time in decision.times.items()}
        about = {"batch": decision.batch, "spans": decision.spans} | ({"times": times} if times else {})
        write_record(self._folder, _OFFSETS, json.dumps(about))

    def _write_pieces(self, name: str, pieces: Sequence[LoggedPiece]) -> None:
        """Write a record of the pieces that are new, in one with those before it if there are many as small.

        Records behind it are of pieces that nothing had been read of when a run was killed, or are in the new one.
        """
        start = self._written[name]
        kept, end = [number for number in self._records[name] if number < start], start + len(pieces)
        while (first := find_merged([*kept, start], end)) is not None:
            pieces = [*self._read(name, [number for number in kept if number >= first], start), *pieces]
            start, kept = first, [number for number in kept if number < first]
        write_record(self._folder, f"{_prefix(name)}{start}", json.dumps(pieces))
        for number in self._records[name]:
            if number > start:
                self._folder.delete(f"{_prefix(name)}{number}")
        self._records[name], self._written[name] = [*kept, start], end

    def _read(self, name: str, records: Sequence[int], end: int | None = None) -> list[LoggedPiece]:
        """Read the pieces of records, up to a number; SQ6005 if one is damaged."""
        pieces = list[LoggedPiece]()
        for number in records:
            if (text := read_record(self._folder, f"{_prefix(name)}{number}", self._path)) is None:
                raise damaged_error(f"{_prefix(name)}{number}", self._path)
            pieces[number - records[0] :] = json.loads(text)
        return pieces if end is None or not records else pieces[: end - records[0]]

    def _list(self, name: str) -> list[int]:
        """List the numbers of a stream's records of pieces."""
        prefix = _prefix(name)
        return sorted(int(each[len(prefix) :]) for each in self._folder.list("") if each.startswith(prefix))


def find_merged(records: Sequence[int], end: int) -> int | None:
    """Find the first of the last records that go into one, as they are many and small; None if there are none.

    find_merged([0, 4096, 4097, …, 4111], 4112)   →   4096
    """
    sizes = [stop - number for number, stop in pairwise((*records, end))]
    for level in range(1, LEVELS + 1):
        count = len(list(takewhile(lambda size, most=MERGED**level: size < most, reversed(sizes))))  # type: ignore[misc]
        if count >= MERGED * level:
            return records[-count]
    return None


def copy_log(before: str, after: str, later: int = 0) -> None:
    """Copy the log of one generation's folder to that of the next, where batches have a number that is `later`."""
    old, new = open_durable(before), open_durable(after, "driver")
    if later and (text := read_record(old, _OFFSETS, before)) is not None:
        found = json.loads(text)
        write_record(new, _OFFSETS, json.dumps(found | {"batch": found["batch"] + later}))
    for name in old.list(""):
        if name.startswith(f"{_SEEN}-") or (name == _OFFSETS and not later):
            new.create(name, partial(_write, old.read(name) or b""))


def _write(data: bytes, sink: IO[bytes]) -> None:
    sink.write(data)


def _prefix(stream: str) -> str:
    return f"{_SEEN}-{zlib.crc32(stream.encode()):08x}-"
