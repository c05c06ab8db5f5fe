"""Batches as files that appear whole, and once: a draft, a rename, then the manifest, which says what is whole.

    out/batch-000000.csv   out/batch-000001.csv   out/_manifest
    {"version": 1, "format": "csv", "mode": "changes", "query": "3f…", "batches": 2, "shown": 2}

With `compact 100`, batches wait in out/_waiting/ until 100 are there, and become one file by one rename:

    out/batch-000000-000099.csv   out/_waiting/batch-000100.csv   out/_manifest     "batches": 101, "shown": 100

A batch that partitions have written has a file for each that had many rows: batch-000007.part-0003.csv. Tasks write
them into out/_waiting/; the manifest says that the batch is whole, then they are moved.

So those who list the folder see each row once, and those who read the manifest every batch at once: names that begin
with _ or . are no data. A batch that comes again after a crash is known by the manifest.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError, counted
from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.partition_head import fresh_name
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.output_folder import DRAFT, OutputFolder, writing_to
from squallpy.runtime.sinks.protocol import SinkWriter

MANIFEST, WAITING = "_manifest", "_waiting"
_BATCH = re.compile(r"batch-(\d{6,})(?:-(\d{6,}))?(?:\.part-\d{4,})?\.(csv|json|parquet)(\.gz|\.bz2|\.zst)?(\.tmp)?")
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
        self._place, self._folder, self._format, self._compact = place, OutputFolder(place), format, compact
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
            self._place, self._folder, self._format, self._manifest, self._compact or 1, schema, added, self._check
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
        place: Path | str,
        folder: OutputFolder,
        format: FileFormat,
        manifest: Manifest,
        compact: int,
        schema: pa.Schema,
        added: int,
        check: Callable[[], None],
    ) -> None:
        self._place, self._folder, self._format = place, folder, format
        self._manifest, self._compact = manifest, compact
        self._schema, self._added, self._check = schema, added, check
        with writing_to(folder):
            self._recover()

    def write(self, rows: Iterator[pa.RecordBatch], batch: int) -> None:
        table = pa.Table.from_batches(rows, self._schema)
        self._folder.draft(lambda out: self._format.write(table, out, self._added))

    def commit(self, messages: list[Any], batch: int) -> None:
        known, parts = self._manifest, [name for name in messages if name is not None]
        if batch < known.batches:
            return
        if batch > known.batches:
            whole = counted(known.batches, "batch", "batches")
            message = f"{self._folder} has {whole}, and the checkpoint has given {batch:,}"
            hint = "put back the folder that it has written to, or name another checkpoint"
            raise SquallError("SQ7005", message, hint=hint)
        check_place(self._folder, batch)
        self._check()
        waits = f"{WAITING}/" if parts or self._compact > 1 else ""
        if len(parts) < len(messages):
            self._folder.publish(f"{waits}{self._name(batch)}")
        self._note(batches=batch + 1, shown=known.shown if waits else batch + 1)
        if self._compact == 1 and self._waiting == 1:
            self._show([*parts, *([f"{waits}{self._name(batch)}"] if len(parts) < len(messages) else [])])
        elif self._waiting >= self._compact:
            self._merge()

    def for_tasks(self) -> "PartFiles":
        return PartFiles(self._place, self._format, self._added, self._manifest.batches)

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
        waiting = self._list(WAITING)
        names = [name for batch in range(first, end) for name in waiting.get(batch, [f"{WAITING}/{self._name(batch)}"])]
        parts = map(self._folder.open, names)
        self._folder.write(self._name(first, end - 1), lambda out: self._format.merge(parts, self._schema, out))
        self._note(shown=end)
        for name in names:
            self._folder.delete(name)

    def _show(self, names: Sequence[str]) -> None:
        """Show the files of the first batch that waits."""
        for name in names:
            self._folder.move(name, name.removeprefix(f"{WAITING}/"))
        self._note(shown=self._manifest.shown + 1)

    def _list(self, below: str = "") -> dict[int, list[str]]:
        """List the files of batches in the folder, or in one inside, by the first batch of each."""
        found = dict[int, list[str]]()
        for name in self._folder.list(below):
            if match := _BATCH.fullmatch(name):
                found.setdefault(int(match[1]), []).append(f"{below}/{name}" if below else name)
        return found

    def _recover(self) -> None:
        """Complete what a killed run has begun: files that it has shown without noting it, and what these replace."""
        for name in self._folder.list():
            if name.startswith(DRAFT):
                self._folder.delete(name)
        for name in self._list().get(self._manifest.shown, ()):
            found = _BATCH.fullmatch(name)
            assert found
            if self._waiting and not found[2]:
                self._show(self._list(WAITING).get(self._manifest.shown, ()))
                break
            end = int(found[2] or found[1]) + 1
            self._note(shown=end, batches=max(end, self._manifest.batches))
        for batch, names in self._list(WAITING).items():
            for name in names if not self._manifest.shown <= batch < self._manifest.batches else ():
                self._folder.delete(name)
        if self._waiting >= self._compact:
            self._merge()


@dataclass
class PartFiles:
    """The writer of files of partitions in tasks, into where they wait to be shown.

    Args:
        first: The batches before it are whole, and may wait under the same names; other partitions have others' rows.
    """

    place: Path | str
    format: FileFormat
    added: int
    first: int

    @property
    def is_shared(self) -> bool:
        return isinstance(self.place, str)

    @cached_property
    def _folder(self) -> OutputFolder:
        return OutputFolder(self.place, f"{DRAFT}-{fresh_name()}")

    def write(self, rows: pa.Table, batch: int, partition: int) -> str:
        check_place(self._folder, batch)
        name = f"{WAITING}/batch-{batch:06}.part-{partition:04}.{self.format.suffix}"
        if batch >= self.first:
            self._folder.draft(lambda out: self.format.write(rows, out, self.added))
            self._folder.publish(name)
        return name


def check_place(folder: OutputFolder, batch: int) -> None:
    """Raise SQ7005 if the folder has vanished under a run."""
    if not folder.exists(MANIFEST):
        message = f"{folder} has gone, or was emptied, before batch {batch:,} was written"
        raise SquallError("SQ7005", message, hint="put it back, and run the same command again")


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
