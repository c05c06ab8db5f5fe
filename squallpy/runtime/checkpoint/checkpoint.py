"""Checkpoints: the durable folder of a query, with its identity and its progress.

    made-for        {"query": "3f…", "plan": "b1…", "sizes": {"r": 1000}, "generation": 1, "before": 12}
    1/batch         the number of batches of generation 1 that are done
    1/partition-0   its state partitions …                                  1/result

A generation has one plan, hence one number of partitions. If a query is started again with another plan, a new
generation begins. If only the places of records differ, the state moves there without the input, see
`runtime/reshard.py`. Otherwise it is rebuilt by a replay of the input so far in a few large batches; `before` is the
number of batches done until then. The record names a generation when its state has moved, or, of streams without end,
when it has come to where the one before is: a run that is killed before loses nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from squallpy.base.errors import SquallError
from squallpy.base.events import CHECKPOINT, INFO, log_event
from squallpy.base.local_paths import join_path, local_path
from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.checksummed_record import damaged_error, read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import Durable, open_durable
from squallpy.runtime.checkpoint.input_files import Inputs, ReadSums
from squallpy.runtime.checkpoint.lease import Lease, hold_folder, hold_shared
from squallpy.runtime.checkpoint.offset_log import copy_log
from squallpy.runtime.checkpoint.partition_head import fresh_name
from squallpy.runtime.checkpoint.state_folders import (
    FINGERPRINT,
    MADE_FOR,
    Committed,
    StateLocation,
    initialise,
    is_initial,
    make_writable,
    state_location,
)
from squallpy.runtime.sources.replay import BackfillReplay, BatchSizes, Replay, leading

_FORMAT = 10  # of all files in a checkpoint, and of the texts that identify queries


@dataclass(frozen=True, slots=True)
class CheckpointIdentity:
    """The identity of a checkpoint: the query, its plan and the rows of its inputs.

    Args:
        program: What the plan places.
        setup: What the plan was made by, as JSON: with the sizes it says how to make it again.
    """

    query: str
    plan: str
    sizes: Mapping[str, int]
    program: str = ""
    setup: Mapping[str, Any] = field(default_factory=dict)


class CannotMove(Exception):
    """A reason why state cannot be moved to another plan, or input not be replayed."""


MoveState = Callable[[CheckpointIdentity, StateLocation, StateLocation, Committed], Any]
"""Moves state from the plan of an identity and a location to another location; returns the driver's state there.

Raises CannotMove.
"""


RepeatBatch = Callable[[StateLocation, Committed], int]
"""Counts the batches in which streams without end repeat what a generation has committed. Raises CannotMove."""


@dataclass(frozen=True, slots=True)
class _Record:
    query: str
    plan: str
    sizes: Mapping[str, int]
    batch_rows: int
    earlier: BatchSizes = ()
    program: str = ""
    setup: Mapping[str, Any] = field(default_factory=dict)
    generation: int = 0
    before: int = 0
    again: int = 0  # batches in which it repeats those before it
    format: int = _FORMAT

    @property
    def identity(self) -> CheckpointIdentity:
        return CheckpointIdentity(self.query, self.plan, self.sizes, self.program, self.setup)

    def steps(self, replay: Replay) -> BackfillReplay:
        """Return its batches of a replay."""
        return BackfillReplay(
            replace(replay, batch_rows=self.batch_rows, earlier=self.earlier), self.before, self.again
        )

    def with_limit(self, batch_rows: int, done: int, replay: Replay) -> "_Record":
        """Change the rows of batches behind the `done` first, but not while it repeats those before it.

        NB: the next one may have been applied without being committed, so it stays as it is.
        """
        if batch_rows == self.batch_rows or done < self.again:
            return self
        kept = min(self.before + done - self.again + 1, self.steps(replay).replay.batches)
        more = kept - sum(count for count, _ in self.earlier)
        earlier = (*self.earlier, (more, self.batch_rows)) if more else self.earlier
        return replace(self, batch_rows=batch_rows, earlier=earlier)


def open_checkpoint(
    folder: str,
    identity: CheckpointIdentity,
    batch_rows: int,
    local_dir: str,
    snapshot_bytes: int,
    inputs: Inputs | None = None,
    repeat: RepeatBatch | None = None,
    move: MoveState | None = None,
) -> StateLocation:
    """Open the state of a query in the checkpoint at a path or URI.

    Where another plan was made for it, the state moves there, or is made anew from the input: by `repeat`, if that has
    no end.

    SQ6001 if it belongs to another query or input, SQ6002 if it is no checkpoint, SQ6003 if it cannot be written,
    SQ6005 if it is damaged.
    """
    root = open_writable(folder)
    wanted = _Record(
        identity.query, identity.plan, dict(identity.sizes), batch_rows, (), identity.program, identity.setup
    )
    found = _read(root, folder)
    if found is None:
        if not _is_new(root):
            raise SquallError("SQ6002", f"{folder} is not empty and not a checkpoint", hint="choose a new folder")
        record = _begin(root, wanted)
    else:
        _compare(found, wanted, folder)
        done = Committed(join_path(folder, str(found.generation)))
        mixed, stored, in_force = False, found, -1
        if inputs:
            mixed = inputs.compare(root, folder, found.steps(inputs.replay), done.batches, done.read_sums)
            found = found.with_limit(batch_rows, done.batches, inputs.replay)
        wanted = replace(wanted, batch_rows=found.batch_rows, earlier=found.earlier)
        if found.plan == wanted.plan and not mixed:
            record = found
            if record != stored:
                write_record(root, MADE_FOR, json.dumps(asdict(record)))
        else:
            locate = partial(_location, folder, local_dir=local_dir, snapshot_bytes=snapshot_bytes)
            try:
                record = _move(root, found, wanted, done, locate, move)
            except CannotMove as reason:
                log_event(CHECKPOINT, INFO, "replay", reason=str(reason))
                if repeat is None:
                    record = _begin(root, _next_generation(found, wanted, done.batches), done.all_read_sums)
                else:
                    record = _repeat(root, found, wanted, done, locate, folder, repeat, reason)
                    in_force = found.generation if record.again else -1
        fingerprint = join_path(str(record.generation), FINGERPRINT)
        if read_record(root, fingerprint, folder) is None:  # NB: a generation has one from the start
            raise damaged_error(fingerprint, folder)
        for other in (*range(record.generation), record.generation + 1):
            if other != in_force:
                root.drop(str(other))
                _location(folder, replace(record, generation=other), local_dir, snapshot_bytes).delete_local()
    if inputs:
        inputs.save(root, ended=False)
    return _location(folder, record, local_dir, snapshot_bytes)


def _location(folder: str, record: _Record, local_dir: str, snapshot_bytes: int) -> StateLocation:
    """Compute the state location of a generation."""
    found = state_location(folder, record.generation, _fingerprint(record), local_dir, snapshot_bytes)
    return replace(
        found, before=record.before, batch_rows=record.batch_rows, earlier=record.earlier, again=record.again
    )


def recorded_sizes(folder: str) -> Mapping[str, int] | None:
    """Return the rows of the inputs when a checkpoint was made, by which its plan was placed; None without one."""
    try:
        found = _read(open_durable(folder), folder)
    except (OSError, ImportError, ValueError, pa.ArrowException):  # NB: `open_checkpoint` says why
        return None
    return found.sizes if found else None


def recorded_setup(folder: str) -> Mapping[str, Any]:
    """Return what the plan of a checkpoint was made by (`CheckpointIdentity.setup`); nothing without one."""
    try:
        found = _read(open_durable(folder), folder)
    except (OSError, ImportError, ValueError, pa.ArrowException):  # NB: `open_checkpoint` says why
        return {}
    return found.setup if found else {}


@contextmanager
def hold_lease(folder: str) -> Iterator[Lease]:
    """Hold the lease of the checkpoint at a path or URI, before anything there is touched.

    SQ6003 if it cannot be written, SQ6007 if another run has it, SQ6008 instead of an error after it was lost.
    """
    open_writable(folder)
    path = local_path(folder)
    with hold_shared(folder) if path is None else hold_folder(path) as lease:
        try:
            yield lease
        except Exception:
            with suppress(OSError):  # NB: the new owner may have deleted what this run failed to read
                lease.check()
            raise


def is_used(folder: str) -> bool:
    """True if a path or URI has any files; False also if it cannot be reached, which `open_checkpoint` reports."""
    try:
        return not _is_new(open_durable(folder))
    except (OSError, ImportError, ValueError, pa.ArrowException):
        return False


def open_writable(folder: str) -> Durable:
    """Open a folder that can be written; SQ6003 if it cannot."""
    try:
        if (path := local_path(folder)) is not None:
            make_writable(path, "checkpoint")
            return open_durable(folder)
        name = fresh_name()
        probe = open_durable(folder, name)
        probe.create(f".probe-{name}", lambda sink: sink.write(b"?"))
        probe.delete(f".probe-{name}")
        return open_durable(folder)
    except (OSError, ImportError, ValueError, pa.ArrowException) as error:
        why = " ".join(str(error).split()).rstrip(".")
        raise SquallError("SQ6003", f"cannot keep state in the checkpoint {folder}: {why}") from None


def _read(root: Durable, folder: str) -> _Record | None:
    text = read_record(root, MADE_FOR, folder)
    try:
        known = None if text is None else json.loads(text)
        return known and _Record(**known | {"earlier": tuple(map(tuple, known.get("earlier", ())))})
    except (ValueError, TypeError):
        raise damaged_error(MADE_FOR, folder) from None


def _compare(found: _Record, wanted: _Record, folder: str) -> None:
    if found.format != wanted.format:
        age = "an earlier" if found.format < wanted.format else "a later"
        message = f"the checkpoint {folder} was made by {age} version"
        raise SquallError("SQ6001", message, hint="start in a new folder")
    if found.query != wanted.query:
        message = f"the checkpoint {folder} is of another query, or of other settings"
        raise SquallError("SQ6001", message, hint="give each query its own folder")
    for name, rows in found.sizes.items():
        if wanted.sizes[name] != rows:
            message = f"{name} has {wanted.sizes[name]:,} rows, and had {rows:,} when the checkpoint {folder} was made"
            hint = "start in a new folder; files may grow under a stream with watch 'true'"
            raise SquallError("SQ6001", message, hint=hint)


def _is_new(root: Durable) -> bool:
    """True if the folder is empty, or has only files of a start that was killed before its record was written."""
    names = root.list("")
    try:
        return not names or (names == ["0"] and is_initial(root.list("0")))
    except OSError:  # a file by that name
        return False


def _begin(root: Durable, record: _Record, read: ReadSums | None = None) -> _Record:
    """Start an empty generation, which the checkpoint has from then on. Its first batches repeat what was `read`."""
    root.drop(str(record.generation))
    initialise(root, str(record.generation), _fingerprint(record), record.again, read)
    write_record(root, MADE_FOR, json.dumps(asdict(record)))
    return record


def _move(
    root: Durable,
    found: _Record,
    wanted: _Record,
    done: Committed,
    locate: Callable[[_Record], StateLocation],
    move: MoveState | None,
) -> _Record:
    """Start a generation that goes on where one has come to, with its state moved. Raises CannotMove."""
    if move is None or found.program != wanted.program:
        raise CannotMove("its statements are others")
    if found.plan == wanted.plan:
        raise CannotMove("files that it was reading have changed")
    record = replace(wanted, generation=found.generation + 1, before=found.before, again=found.again)
    name, before, after = str(record.generation), locate(found), locate(record)
    root.drop(name)
    initialise(root, name, _fingerprint(record))
    facts = move(found.identity, before, after, done) if done.batches else None
    copy_log(before.durable, after.durable)
    Committed(after.durable).take_over(done, facts)
    write_record(root, MADE_FOR, json.dumps(asdict(record)))
    return record


def _repeat(
    root: Durable,
    found: _Record,
    wanted: _Record,
    done: Committed,
    locate: Callable[[_Record], StateLocation],
    folder: str,
    repeat: RepeatBatch,
    reason: CannotMove,
) -> _Record:
    """Start a generation, or go on with one, that repeats streams without end, and is in force when that is done."""
    before = locate(found)
    try:
        again = repeat(before, done)
    except CannotMove as other:
        message = f"the checkpoint {folder} is of another plan of this query, and its state cannot move: {reason}"
        hint = "run it with the settings of then, or start in a new folder"
        raise SquallError("SQ6001", f"{message}, and {other}", hint=hint) from None
    record = replace(_next_generation(found, wanted, done.batches), again=again)
    name, after, text = str(record.generation), locate(record), json.dumps(asdict(record))
    if not again or not _is_pending(root, after, record, text):
        root.drop(name)
        copy_log(before.durable, after.durable, again - done.batches)
        initialise(root, name, _fingerprint(record), again, done.all_read_sums, text)
    if not again:
        write_record(root, MADE_FOR, text)
    return record


def _is_pending(root: Durable, location: StateLocation, record: _Record, text: str) -> bool:
    """True if a generation was begun that this record is for."""
    name = join_path(str(record.generation), FINGERPRINT)
    known = read_record(root, name, location.durable)
    return known == _fingerprint(record) and Committed(location.durable).made_for == text


def _next_generation(found: _Record, wanted: _Record, done: int) -> _Record:
    """Describe the generation after one with `done` batches."""
    before = found.before if done < found.again else found.before + done - found.again
    again = leading(before, wanted.batch_rows, wanted.earlier)
    return replace(wanted, generation=found.generation + 1, before=before, again=again)


def _fingerprint(record: _Record) -> str:
    return f"{record.query} {record.plan} {record.generation}"
