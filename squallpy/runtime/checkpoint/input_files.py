"""The input files of a checkpoint: size and time in the last run, and checksums of what was read of each.

    inputs         {"ended": true, "sources": {"t": {"columns": ["k", "v"], "files": [["d/1.csv", 4711, 1764…], …]}}}
    1/batch        12 {"read": {"t": {"64": 9077…}}}      the checksums that batches of generation 1 have added up to
    1/read-5c…-0   those of the files 0 … 63 of the first source, after they have been read

A file of the same size and modification time is taken for the same one. Otherwise the checksum decides: the file is
accepted if the part that was read is unchanged.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.checksummed_record import damaged_error, read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import Durable
from squallpy.runtime.sources.replay import BackfillReplay, Replay
from squallpy.runtime.sources.source import FileSource

RECORD = "inputs"
SEGMENT = 64  # files of a source whose checksums are in one record
Sums = dict[str, dict[int, int]]  # by source and number of the file


@dataclass
class ReadSums:
    """Checksums of the input of batches; `written` counts the segments with a record, by source.

    Those of segments that have one are all there after `load`, and are forgotten with the next `save`.
    """

    sums: Sums = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def load(folder: Durable, path: str, facts: Mapping[str, Mapping[Any, int]]) -> "ReadSums":
        """Load the checksums of a commit and of the records of segments; SQ6005 if one is damaged."""
        found = ReadSums.of(facts)
        for source, parts in found.sums.items():
            found.written[source] = min(parts) // SEGMENT
            for segment in range(found.written[source]):
                text = read_record(folder, _segment(source, segment), path)
                if text is None:
                    raise damaged_error(_segment(source, segment), path)
                parts |= {int(part): sum for part, sum in json.loads(text).items()}
        return found

    @staticmethod
    def of(sums: Mapping[str, Mapping[Any, int]]) -> "ReadSums":
        """Restore checksums from JSON."""
        return ReadSums({source: {int(part): sum for part, sum in parts.items()} for source, parts in sums.items()})

    def add(self, read: Mapping[str, Mapping[str, int]]) -> None:
        """Add the checksums of one more batch."""
        for source, parts in read.items():
            known = self.sums.setdefault(source, {})
            for part, sum in parts.items():
                known[int(part)] = (known.get(int(part), 0) + sum) % (1 << 64)

    def compare(self, before: "ReadSums") -> None:
        """Raise SQ6001 if the same batches had other checksums before."""
        for source, parts in before.sums.items():
            if self.sums.get(source) != parts:
                message = f"the files of {source} have changed since the checkpoint was made"
                raise SquallError("SQ6001", message, hint="choose another folder to start over")

    def save(self, folder: Durable) -> Sums:
        """Write the segments that will not change any more; return the others, for the commit."""
        rest: Sums = {}
        for source, parts in self.sums.items():
            top = max(parts)
            last = top // SEGMENT
            for segment in range(self.written.get(source, 0), last):
                inside = {part: sum for part, sum in parts.items() if part // SEGMENT == segment}
                write_record(folder, _segment(source, segment), json.dumps(inside))
            self.written[source] = last
            for part in [part for part in parts if part < last * SEGMENT]:
                del parts[part]
            rest[source] = {part: parts[part] for part in range(last * SEGMENT, top + 1) if part in parts}
        return rest


def _segment(source: str, segment: int) -> str:
    return f"read-{zlib.crc32(source.encode()):08x}-{segment}"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs of a run: sources, by their name in statistics, with their columns, and the replay order."""

    sources: Mapping[str, tuple[FileSource, tuple[str, ...]]]
    replay: Replay

    def compare(self, root: Durable, folder: str, steps: BackfillReplay, batches: int, read: ReadSums) -> bool:
        """Raise SQ6001 if a file has changed in the part that the committed batches of some steps have read.

        True if a file was written since, after that part, and the last run did not end normally: then batches that it
        began without committing may have read the file's former contents.
        """
        text = read_record(root, RECORD, folder)
        known: dict[str, Any] = json.loads(text) if text else {"ended": True, "sources": {}}
        rows, written = self._rows(steps, batches), False
        for name, (source, _) in self.sources.items():
            was = known["sources"].get(name)
            for number, file in enumerate(was["files"] if was else ()):
                part = source.parts[number] if number < len(source.parts) else None
                if part is None or not part.file.changed or file[1:] != [part.file.size, part.file.changed]:
                    written = True
                    first = max(0, rows[name] - source.starts[number]) if part else 0
                    sum = part.checksum(first, was["columns"]) if part and first else 0
                    if sum != read.sums.get(name, {}).get(number, 0):
                        name = part.file.display_name if part else file[0]
                        message = f"{name} has changed since the checkpoint {folder}"
                        raise SquallError("SQ6001", f"{message} read it", hint="choose another folder to start over")
        return written and not known["ended"]

    def _rows(self, steps: BackfillReplay, batches: int) -> dict[str, int]:
        """Count the rows of each source that these batches of a generation have read."""
        if not batches:
            return dict.fromkeys(self.sources, 0)
        ends = {name: end for name, (_, end) in steps.ranges(batches - 1).items()}
        return {name: ends.get(source.relation.name, source.rows) for name, (source, _) in self.sources.items()}

    def save(self, root: Durable, ended: bool) -> None:
        """Record the files as they are now; `ended`: the run that reads them has ended normally."""
        sources = {
            name: {
                "columns": columns,
                "files": [[p.file.display_name, p.file.size, p.file.changed] for p in source.parts],
            }
            for name, (source, columns) in self.sources.items()
        }
        write_record(root, RECORD, json.dumps({"ended": ended, "sources": sources}))
