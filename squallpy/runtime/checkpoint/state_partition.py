"""State partitions: the state of one partition of a query, kept exactly once through kills, retries and moves.

    local/      lock   HEAD   output   state.3/pool.orders.keys.0 …        on this host, may be lost
    durable/    identity   log/…   snapshot/17  snapshot/12             in the checkpoint, the truth

    partition.apply(18, messages)    →  the output of batch 18, however often and wherever it is called

A batch: mark dirty → log the messages → run → write the output → HEAD = 18, clean → snapshot if it is due. A batch that
is killed before it is logged has no effect; after that, the next process finds the mark (or no state, or the state of
another step) and rebuilds the state from the newest snapshot and the log, as `run` is deterministic. Whether the
durable folder survives a power cut depends on its file system. All files there have checksums: instead of a damaged
snapshot the previous one is read, whose log is kept as well; a log that does not reach far enough is an error.

A batch may have several stages, each with its own messages and output; then everything is recorded by step, one for
each stage of a batch, and a stage of the last batch can still be repeated when later ones are done.
"""

import fcntl
import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import IO

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.base.timing import SILENT, Trace
from squallpy.runtime.checkpoint.checksummed_record import ANEW, read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import Durable, open_durable, reporting_no_room
from squallpy.runtime.checkpoint.journal import Journal
from squallpy.runtime.checkpoint.partition_head import Head, boot_id, fresh_name
from squallpy.runtime.checkpoint.partition_report import PartitionReport, RebuildReport, SnapshotReport
from squallpy.runtime.checkpoint.snapshot import is_intact, read_outputs, write_snapshot
from squallpy.runtime.state.pool_names import Role
from squallpy.runtime.state.pool_storage import MappedStorage
from squallpy.runtime.state.state_store import Store, StoreLayout, layout_stamp

Run = Callable[[Store, list[bytes]], bytes]
_COUNTING = tuple(f"{role.value} " for role in (Role.LEDGER, Role.LATEST))  # beginnings of names of pools
_SNAPSHOTS = 2  # snapshots, with the log since the older one


@dataclass(frozen=True, slots=True)
class StepRange:
    """The steps of a batch: the number of the first, and their count."""

    first: int
    count: int

    @property
    def end(self) -> int:
        return self.first + self.count


class StatePartition:
    """One partition's state, which objects in several processes of a host, and on several hosts, may share.

    Args:
        runs: For each stage of a batch, a function that applies messages to the store and returns the stage's output.
        fingerprint: Names all that the state depends on.
        snapshot_every: A snapshot is due when the log since the last exceeds these bytes and the size of the contents.
        fault: Called at every point at which tests kill the process.
        run: The only run that trusts local files; empty for any.
    """

    def __init__(
        self,
        local: Path,
        durable: str,
        layout: StoreLayout,
        runs: Sequence[Run],
        fingerprint: str,
        snapshot_every: int = 16 << 20,
        fault: Callable[[str], None] = lambda point: None,
        trace: Trace = SILENT,
        run: str = "",
    ) -> None:
        self._local, self._folder, self._layout, self._runs = local, durable, layout, tuple(runs)
        self._fingerprint, self._snapshot_every, self._fault, self._trace = fingerprint, snapshot_every, fault, trace
        self._counted = tuple(pool.name for pool in layout.pools if pool.name.startswith(_COUNTING))
        self._head, self._lock = local / "HEAD", local / "lock"
        # by stage, of the last batch that had the stage
        self._outputs = [local / f"output.{stage}" for stage in range(len(self._runs))]
        writer = uuid.uuid5(uuid.NAMESPACE_OID, f"{boot_id()} {local.resolve()}")
        self._durable = open_durable(durable, str(writer))
        self._journal = Journal(self._durable)
        self._run = run
        self._store: Store | None = None
        self._edition = -1  # of `_store`
        self.rebuilt: RebuildReport | None = None
        """How the last `apply` came by its state, if it had to rebuild it from anything."""
        self._written: SnapshotReport | None = None
        self._seconds = 0.0
        self.keeps_log = False
        """True while somebody else reads what is durable: no snapshot is taken, which would drop some of it."""
        with reporting_no_room(durable):
            local.mkdir(parents=True, exist_ok=True)

    def apply(self, batch: int, messages: Sequence[bytes], stage: int = 0, steps: StepRange | None = None) -> bytes:
        """Apply a stage of a batch exactly once, and return the output of that application.

        `steps` are the batch's, if batches differ in their stages. Raises SQ6001 if the durable folder has another
        fingerprint, SQ6005 if files there that it needs are damaged, SQ6006 if there is no room to write.
        """
        self.rebuilt = self._written = None
        self._seconds = 0.0
        with self._locked(), reporting_no_room(self._folder):
            return self._apply(batch, messages, stage, steps or StepRange(batch * len(self._runs), len(self._runs)))

    def _apply(self, batch: int, messages: Sequence[bytes], stage: int, steps: StepRange) -> bytes:
        step = steps.first + stage
        identity = self._identity()
        head = Head.read(self._head)
        if (
            head is None
            or not self._trusts(head, identity)
            or (head.step != step - 1 and not step <= head.step < steps.end)
        ):
            head = self._rebuild(identity)
        if step <= head.step < steps.end:
            return self._outputs[stage].read_bytes()
        self._check_reach(head, step - 1, batch)
        assert head.step == step - 1, f"step {step} asked of a partition at step {head.step} in {self._folder}"
        return self._advance(head, messages, stage, is_last=step + 1 == steps.end)

    def report(self, partition: int | str) -> PartitionReport:
        """Report on the last `apply`, under the name of the partition."""
        store = self._store
        counted = [(name, store[name].usage) for name in self._counted] if store else []
        found = tuple((name, used.pop("records"), sum(used.values())) for name, used in counted)
        return PartitionReport(partition, self._seconds, self.rebuilt, self._written, found)

    def store(self) -> Store:
        """Open the store as of the last batch applied on this host; it must not be changed."""
        with self._locked(), reporting_no_room(self._folder):
            identity, head = self._identity(), Head.read(self._head)
            if head is None or not self._trusts(head, identity):
                head = self._rebuild(identity)
            return self._open(head)

    def _trusts(self, head: Head, identity: str) -> bool:
        """True if local files are as the head describes."""
        theirs = head.boot, head.identity, head.run, head.layout
        return theirs == (boot_id(), identity, self._run, layout_stamp()) and not head.dirty

    def _advance(self, head: Head, messages: Sequence[bytes], stage: int, is_last: bool) -> bytes:
        """Apply the next step."""
        step = head.step + 1
        self._fault("before dirty")
        with self._writing("mark"):
            head = head.copy(dirty=True).write(self._head)
        self._fault("before log")
        with self._writing("log"):
            logged = head.logged + self._journal.append(head.segment, step, [bytes([stage]), *messages])
        self._fault("before run")
        store = self._open(head)
        output = self._runs[stage](store, list(messages))
        self._fault("before output")
        with self._writing("keep output"):
            self._outputs[stage].write_bytes(output)
        self._fault("before clean")
        with self._writing("mark"):
            head = head.copy(step=step, dirty=False, logged=logged).write(self._head)
        self._fault("after clean")
        if is_last and not self.keeps_log and logged > max(self._snapshot_every, store.live_nbytes):
            with self._writing("snapshot"):
                self._snapshot(head, store)
        return output

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Time the block, which writes what a restart reads."""
        start = perf_counter()
        with self._trace(name):
            yield
        self._seconds += perf_counter() - start

    def _snapshot(self, head: Head, store: Store) -> None:
        """Write contents and the last batch's outputs to the durable folder, then drop what they replace."""
        start, size = perf_counter(), 0
        outputs = [path.read_bytes() if path.exists() else b"" for path in self._outputs]

        def fill(sink: IO[bytes]) -> None:
            nonlocal size
            self._fault("inside snapshot")
            size = write_snapshot(sink, outputs, store)

        older = [int(name) for name in self._durable.list("snapshot") if int(name) < head.step]
        self._durable.create(f"snapshot/{head.step:020}", fill)
        self._fault("after snapshot")
        head.copy(logged=0, segment=fresh_name()).write(self._head)
        self._fault("before drop")
        if older:
            self._journal.drop(older[-1])
        self._fault("before drop of snapshots")
        for step in older[: 1 - _SNAPSHOTS]:
            self._durable.delete(f"snapshot/{step:020}")
        self._written = SnapshotReport(head.step, size, perf_counter() - start)

    def _rebuild(self, identity: str) -> Head:
        """Rebuild the local state from the durable folder."""
        start = perf_counter()
        editions = [int(folder.suffix[1:]) for folder in self._local.glob("state.*")]
        edition = max(editions, default=-1) + 1
        head = Head(-1, True, edition, 0, fresh_name(), identity, boot_id(), self._run, layout_stamp())
        head.write(self._head)
        self._fault("before rebuild")
        self._store = None
        for edition in editions:
            shutil.rmtree(self._local / f"state.{edition}")
        store = self._open(head)
        taken, damaged = self._restore(store)
        head = head.copy(step=taken)
        self._fault("inside rebuild")
        for step, ((stage,), *messages) in self._journal.read(after=taken):
            self._outputs[stage].write_bytes(self._runs[stage](store, messages))
            head = head.copy(step=step, logged=head.logged + sum(map(len, messages)))
        self._fault("after replay")
        if head.step >= 0 or damaged:
            self.rebuilt = RebuildReport(perf_counter() - start, taken, head.step - taken, damaged)
        return head.copy(dirty=False).write(self._head)

    def _restore(self, store: Store) -> tuple[int, tuple[str, ...]]:
        """Read the newest whole snapshot: its step, −1 without one, and the damaged ones."""
        taken, outputs, damaged = _restore_snapshot(self._durable, store, len(self._runs))
        for stage, output in enumerate(outputs):
            self._outputs[stage].write_bytes(output)
        return taken, tuple(f"{self._folder}/{name}" for name in damaged)

    def _check_reach(self, head: Head, step: int, batch: int) -> None:
        """Raise SQ6005 if a rebuild ends before a step that was applied; else delete damaged snapshots."""
        damaged = self.rebuilt.damaged if self.rebuilt else ()
        if head.step < step:
            files = damaged or tuple(f"{self._folder}/{name}" for name in self._journal.damaged_files)
            what = f"{' and '.join(files)} damaged" if files else f"{self._folder}/log has nothing of it"
            raise SquallError("SQ6005", f"the state before batch {batch} is lost: {what}", hint=ANEW)
        for path in damaged:
            self._durable.delete(path.removeprefix(f"{self._folder}/"))

    def _open(self, head: Head) -> Store:
        """Open the store of the head's edition; after a rebuild elsewhere, older mappings show deleted files."""
        if self._store is None or self._edition != head.edition:
            self._store = Store(self._layout, MappedStorage(self._local / f"state.{head.edition}"))
            self._edition = head.edition
        return self._store

    def _identity(self) -> str:
        """Read the name that the durable folder got at its first use, after comparing fingerprints."""
        text = read_record(self._durable, "identity", self._folder)
        if text is None:
            made = json.dumps({"identity": fresh_name(), "fingerprint": self._fingerprint})
            write_record(self._durable, "identity", made)
            text = read_record(self._durable, "identity", self._folder) or made
        known = json.loads(text)
        if known["fingerprint"] != self._fingerprint:
            what = f"the state in {self._folder} belongs to {known['fingerprint']}, not to {self._fingerprint}"
            raise SquallError("SQ6001", what, hint="give each query its own folder")
        return str(known["identity"])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock.open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def read_state(folder: str, layout: StoreLayout, runs: Sequence[Run], step: int) -> Store:
    """Read a partition as it was after a step, which may not be its last, from the durable folder at a path or URI.

    SQ6005 if files that it needs are damaged. NB: the snapshot before the last is kept, with the log since then.
    """
    durable, store = open_durable(folder), Store(layout)
    journal = Journal(durable)
    reached, _, damaged = _restore_snapshot(durable, store, len(runs), step)
    for at, ((stage,), *messages) in journal.read(after=reached):
        if at > step:
            break
        runs[stage](store, messages)
        reached = at
    if reached < step:
        files = " and ".join(f"{folder}/{name}" for name in (*damaged, *journal.damaged_files)) or f"{folder}/log"
        raise SquallError("SQ6005", f"the state after step {step} is lost: {files} damaged", hint=ANEW)
    return store


def _restore_snapshot(
    durable: Durable, store: Store, stages: int, most: int | None = None
) -> tuple[int, list[bytes], list[str]]:
    """Read the newest whole snapshot into a store, of a step up to `most`.

    Returns its step, −1 without one, the outputs of the batch before it, and the names of damaged snapshots.
    """
    damaged: list[str] = []
    for name in reversed(durable.list("snapshot")):
        if most is not None and int(name) > most:
            continue
        with durable.open(f"snapshot/{name}") as source:
            if is_intact(source):
                outputs = read_outputs(source, stages)
                store.restore(source)
                return int(name), outputs, damaged
        damaged.append(f"snapshot/{name}")
    return -1, [], damaged
