"""Checkpoints of sessions: the definitions and the state of what they keep fresh, which change together.

    session         {"format": 2, "generation": 3, "statements": ["CREATE STREAM …", …], "settings": {…}}
    3/batch         the number of committed batches
    3/offsets       how far sources were read
    3/partition-0   state partitions …                              3/result
    spool/          rows that cannot be read twice

A statement that changes what is kept fresh begins a generation with the state of the new program. The record names it
when that is whole, so that a run that is killed before goes on as if the statement had not been given.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, field, replace

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.checkpoint import open_writable
from squallpy.runtime.checkpoint.checksummed_record import damaged_error, read_record, write_record
from squallpy.runtime.checkpoint.state_folders import MADE_FOR, StateLocation, initialise, state_location

_RECORD = "session"
_FORMAT = 2
NONE = 0
"""The generation of a session that keeps nothing fresh."""


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """The definitions of a session and the generation of its state.

    Args:
        statements: What was declared, in an order in which it can be declared again.
        columns: Columns that were found in files, as a declaration lists them, by relation.
        settings: Settings of the engine, as name=value.
        batches: The number of batches when it was written.
        sinks: The number of the last batch before each sink was created, by name.
        partitions: Those of its generation.
        rows: Rows that relations had when its plan was chosen.
        present: Relations of which these are what there was, not all changes.
    """

    generation: int = NONE
    statements: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    batches: int = 1
    sinks: Mapping[str, int] = field(default_factory=dict)
    partitions: int = 1
    rows: Mapping[str, int] = field(default_factory=dict)
    present: tuple[str, ...] = ()
    last: int = NONE
    format: int = _FORMAT


class SessionCheckpoint:
    """The checkpoint of a session in a folder, at a path or URI, whose lease the caller holds.

    SQ6002 if the folder holds something else, SQ6003 if it cannot be written, SQ6005 if it is damaged.
    """

    def __init__(self, folder: str, local_dir: str, snapshot_bytes: int) -> None:
        self.folder, self._local_dir, self._snapshot_bytes = folder, local_dir, snapshot_bytes
        self._root = open_writable(folder)
        self.record = self._read()

    def _read(self) -> SessionRecord:
        text = read_record(self._root, _RECORD, self.folder)
        if text is None:
            if MADE_FOR in self._root.list(""):
                message = f"{self.folder} is the checkpoint of a script, not of a session"
                raise SquallError("SQ6002", message, hint="choose a new folder")
            return SessionRecord()
        try:
            known = json.loads(text)
            if known["format"] != _FORMAT:
                age = "an earlier" if known["format"] < _FORMAT else "a later"
                message = f"the session in {self.folder} was made by {age} version"
                raise SquallError("SQ6001", message, hint="begin in a new folder")
            lists = {name: tuple(known.get(name, ())) for name in ("statements", "settings", "present")}
            return SessionRecord(**known | lists)
        except (ValueError, TypeError, KeyError):
            raise damaged_error(_RECORD, self.folder) from None

    def location(self, generation: int) -> StateLocation:
        """Return the state location of a generation."""
        fingerprint = f"session {generation}"
        return state_location(self.folder, generation, fingerprint, self._local_dir, self._snapshot_bytes)

    @property
    def current(self) -> StateLocation | None:
        """The location of the state; None if nothing is kept fresh."""
        return self.location(self.record.generation) if self.record.generation != NONE else None

    def begin(self) -> tuple[int, StateLocation]:
        """Begin a generation, which is not in force yet."""
        number = self.record.last + 1
        location = self.location(number)
        self._root.drop(str(number))
        location.delete_local()
        initialise(self._root, str(number), location.fingerprint)
        return number, location

    def save(self, record: SessionRecord) -> None:
        """Put a record in force, and delete the generation before it."""
        record = replace(record, last=max(self.record.last, record.generation))
        if record == self.record:
            return
        write_record(self._root, _RECORD, json.dumps(asdict(record)))
        before, self.record = self.record.generation, record
        if before not in (NONE, record.generation):
            self._root.drop(str(before))
            self.location(before).delete_local()

    def delete_local(self) -> None:
        """Delete this host's mapped files, after a clean end."""
        if self.current:
            self.current.delete_local()
