"""Batches as files that appear whole, and once: a draft, a rename, then the manifest, which says what is whole.

    out/batch-000000.csv   out/batch-000001.csv   out/_manifest
    {"version": 1, "format": "csv", "mode": "changes", "query": "3f…", "batches": 2, "shown": 2}

With `compact 100`, batches wait in out/_waiting/ until 100 are there, and become one file by one rename:

    out/batch-000000-000099.csv   out/_waiting/batch-000100.csv   out/_manifest     "batches": 101, "shown": 100

So those who list the folder see each row once, and those who read the manifest every batch at once: names that begin
with _ or . are no data. A batch that comes again after a crash is known by the manifest.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.output_folder import OutputFolder, writing_to
from squallpy.runtime.sinks.protocol import SinkWriter

MANIFEST, WAITING = "_manifest", "_waiting"
_BATCH = re.compile(r"batch-(\d{6,})(?:-(\d{6,}))?\.(csv|json|parquet)(\.gz|\.bz2|\.zst)?(\.tmp)?")
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """Batches of a folder: so many are whole, and so many of these are in files that are `shown`."""

    format: str
    mode: str
    query: str
    batches: int = 0
    shown: int = 0
    version: int = _FORMAT

    def packed(self) -> bytes:
        """Write it as JSON."""
        return json.dumps(asdict(self)).encode() + b"\n"


class BatchFiles:
    """A folder with a file for each batch, or for several, which one run at a time writes to.

    Args:
        wanted: What is to be written, of how many batches nothing yet.
        compact: Of how many batches a file is made.
        resumed: The run goes on where another stopped; any other starts over, and deletes earlier batches.
    """

    def __init__(
        self, place: Path | str, format: FileFormat, wanted: Manifest, compact: int | None, resumed: bool
    ) -> None:
        self._folder, self._format, self._compact = OutputFolder(place), format, compact
        self._opened = ExitStack()
        self._check = self._opened.enter_context(self._folder.hold())
        try:
            with writing_to(self._folder):
                self._manifest = self._open(wanted, resumed)
        except BaseException:
            self.close()
            raise

    def _open(self, wanted: Manifest, resumed: bool) -> Manifest:
        found = read_manifest(self._folder)
        if resumed and found:
            if (found.query, found.mode, found.format) != (wanted.query, wanted.mode, wanted.format):
                message = f"{self._folder} has batches of another query, or of mode '{found.mode}' as {found.format}"
                raise SquallError("SQ7005", message, hint="name another folder, or another checkpoint")
            return found
        self._folder.write(MANIFEST, lambda out: out.write(wanted.packed()))
        for below in ("", WAITING):
            for name in self._folder.list(below):
                if is_batch(name):
                    self._folder.delete(f"{below}/{name}" if below else name)
        return wanted

    def __str__(self) -> str:
        return str(self._folder)

    def writer(self, schema: pa.Schema, added: int) -> SinkWriter:
        self._writer = BatchFileWriter(
            self._folder, self._format, self._manifest, self._compact or 1, schema, added, self._check
        )
        return self._writer

    def finish(self) -> None:
        self._writer.finish()

    def close(self) -> None:
        self._opened.close()


class BatchFileWriter:
    """The writer of a folder of batches, of which it has the manifest."""

    def __init__(
        self,
        folder: OutputFolder,
        format: FileFormat,
        manifest: Manifest,
        compact: int,
        schema: pa.Schema,
        added: int,
        check: Callable[[], None],
    ) -> None:
        self._folder, self._format, self._manifest, self._compact = folder, format, manifest, compact
        self._schema, self._added, self._check = schema, added, check
        with writing_to(folder):
            self._recover()

    def write(self, rows: Iterator[pa.RecordBatch], batch: int) -> None:
        table = pa.Table.from_batches(rows, self._schema)
        self._folder.draft(lambda out: self._format.write(table, out, self._added))

    def commit(self, messages: list[Any], batch: int) -> None:
        known = self._manifest
        if batch < known.batches:
            return
        if batch > known.batches:
            message = f"{self._folder} has {known.batches:,} batches, and the checkpoint has given {batch:,}"
            hint = "put back the folder that it has written to, or name another checkpoint"
            raise SquallError("SQ7005", message, hint=hint)
        if not self._folder.exists(MANIFEST):
            message = f"{self._folder} has gone, or was emptied, before batch {batch:,} was written"
            raise SquallError("SQ7005", message, hint="put it back, and run the same command again")
        self._check()
        waits = f"{WAITING}/" if self._compact > 1 else ""
        self._folder.publish(f"{waits}{self._name(batch)}")
        self._note(batches=batch + 1, shown=known.shown if waits else batch + 1)
        if self._waiting >= self._compact:
            self._merge()

    def abort(self, messages: list[Any], batch: int) -> None:
        """Leave the draft to the next batch, which replaces it."""

    def finish(self) -> None:
        """Show the batches that wait."""
        with writing_to(self._folder):
            if self._waiting and self._folder.exists(MANIFEST):
                self._merge()

    @property
    def _waiting(self) -> int:
        return self._manifest.batches - self._manifest.shown

    def _name(self, first: int, last: int | None = None) -> str:
        return f"batch-{first:06}{'' if last is None else f'-{last:06}'}.{self._format.suffix}"

    def _note(self, **changes: Any) -> None:
        noted = replace(self._manifest, **changes)
        self._folder.write(MANIFEST, lambda out: out.write(noted.packed()))
        self._manifest = noted

    def _merge(self) -> None:
        """Show the batches that wait as one file."""
        first, end = self._manifest.shown, self._manifest.batches
        names = [f"{WAITING}/{self._name(batch)}" for batch in range(first, end)]
        parts = map(self._folder.open, names)
        self._folder.write(self._name(first, end - 1), lambda out: self._format.merge(parts, self._schema, out))
        self._note(shown=end)
        for name in names:
            self._folder.delete(name)

    def _recover(self) -> None:
        """Complete what a killed run has begun: a file that it has shown without noting it, and what that replaces."""
        for name in self._folder.list():
            found = _BATCH.fullmatch(name)
            if found and int(found[1]) == self._manifest.shown:
                end = int(found[2] or found[1]) + 1
                self._note(shown=end, batches=max(end, self._manifest.batches))
        for name in self._folder.list(WAITING):
            found = _BATCH.fullmatch(name)
            if found and int(found[1]) < self._manifest.shown:
                self._folder.delete(f"{WAITING}/{name}")
        if self._waiting >= self._compact:
            self._merge()


def is_batch(name: str) -> bool:
    """True if a file of this name may be one of ours."""
    return bool(_BATCH.fullmatch(name))


def read_manifest(folder: OutputFolder) -> Manifest | None:
    """Read the manifest of a folder; None without one. SQ7005 if it is not ours."""
    text = folder.read(MANIFEST)
    if text is None:
        return None
    try:
        found = Manifest(**json.loads(text))
        if found.version == _FORMAT:
            return found
    except (ValueError, TypeError):
        pass
    raise SquallError("SQ7005", f"{folder}/{MANIFEST} is no manifest of ours", hint="name another folder")
