"""State partitions: the state of one partition of a query, kept exactly once through kills, retries and moves.

    local/      lock   HEAD   output   state.3/pool.orders.keys.0 …        this host's, lost without harm
    durable/    identity   log/…   snapshot/17                         in the checkpoint, the truth

    partition.apply(18, messages)    →  the output of batch 18, however often and wherever it is asked for

A batch goes: mark dirty → log the messages → run → keep the output → HEAD = 18, clean → snapshot if it is time. Killed
before the log has the batch, it never was; killed later, whoever comes next finds the mark (or no state at all, or
state that is not where it should be) and rebuilds: newest snapshot, then the log through `run`, which is deterministic.
Against a power cut the durable folder is as good as its file system.

A batch may have several stages, each with messages and an output of its own; then all of that is by step, of which
every batch has one for each stage, and a stage of the last batch can still be asked for when later ones are done.
"""

import fcntl
import json
import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from squallpy.runtime.state.durable import open_durable
from squallpy.runtime.state.head import Head, boot, fresh_name
from squallpy.runtime.state.journal import Journal
from squallpy.runtime.state.storage import Mapped
from squallpy.runtime.state.store import Store, StoreLayout

Run = Callable[[Store, list[bytes]], bytes]


class ForeignState(Exception):
    """The durable folder holds the state of something else: another plan, schema, partition count or version."""

    def __init__(self, place: str, expected: str, found: str) -> None:
        super().__init__(f"the state in {place} belongs to {found}, not to {expected}")
        self.place, self.expected, self.found = place, expected, found


class StatePartition:
    """One partition's state; objects in several processes of a host, and on several hosts, may stand for the same one.

    `runs`, one for each stage, apply messages to the store and return the stage's output. `fingerprint` names all that
    gives the state its meaning. A snapshot is due when the log since the last one has passed `snapshot_every` bytes and
    the size of the contents. `fault` is called at every point where a kill would be interesting.
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
    ) -> None:
        self._local, self._place, self._layout, self._runs = local, durable, layout, tuple(runs)
        self._fingerprint, self._snapshot_every, self._fault = fingerprint, snapshot_every, fault
        writer = uuid.uuid5(uuid.NAMESPACE_OID, f"{boot()} {local.resolve()}")
        self._durable = open_durable(durable, str(writer))
        self._journal = Journal(self._durable)
        self._store: Store | None = None
        self._edition = -1  # of `_store`
        local.mkdir(parents=True, exist_ok=True)

    def apply(self, batch: int, messages: Sequence[bytes], stage: int = 0) -> bytes:
        """Apply a stage of a batch, once; the output that its one application had.

        Raises `ForeignState` if the durable folder is of another fingerprint.
        """
        step, first = batch * len(self._runs) + stage, batch * len(self._runs)
        with self._locked():
            identity = self._identity()
            head = Head.read(self._local / "HEAD")
            believable = head is not None and not head.dirty and head.boot == boot() and head.identity == identity
            known = head is not None and (head.step == step - 1 or step <= head.step < first + len(self._runs))
            if head is None or not believable or not known:
                head = self._rebuild(identity, head)
            if step <= head.step < first + len(self._runs):
                return self._output(step).read_bytes()
            assert head.step == step - 1, f"step {step} asked of a partition at step {head.step} in {self._place}"
            return self._advance(head, messages)

    def store(self) -> Store:
        """The store as of the last batch applied on this host; not to be changed."""
        with self._locked():
            identity, head = self._identity(), Head.read(self._local / "HEAD")
            if head is None or head.dirty or head.boot != boot() or head.identity != identity:
                head = self._rebuild(identity, head)
            return self._open(head)

    def _advance(self, head: Head, messages: Sequence[bytes]) -> bytes:
        """Apply the next step."""
        step, path = head.step + 1, self._local / "HEAD"
        self._fault("before dirty")
        head = head.but(dirty=True).write(path)
        self._fault("before log")
        logged = head.logged + self._journal.append(head.segment, step, messages)
        self._fault("before run")
        store = self._open(head)
        output = self._runs[step % len(self._runs)](store, list(messages))
        self._fault("before output")
        self._output(step).write_bytes(output)
        self._fault("before clean")
        head = head.but(step=step, dirty=False, logged=logged).write(path)
        self._fault("after clean")
        is_last = (step + 1) % len(self._runs) == 0
        if is_last and logged > self._snapshot_every and logged > store.live_nbytes:
            self._snapshot(head, store)
        return output

    def _output(self, step: int) -> Path:
        """Where the output of a step of the last batch is."""
        return self._local / f"output.{step % len(self._runs)}"

    def _snapshot(self, head: Head, store: Store) -> None:
        """Write contents and the last batch's outputs to the durable folder, then drop what they replace."""
        outputs = [self._output(step).read_bytes() for step in range(len(self._runs))]

        def fill(sink: IO[bytes]) -> None:
            for output in outputs:
                sink.write(len(output).to_bytes(8, "little") + output)
            self._fault("inside snapshot")
            store.snapshot(sink)

        self._durable.create(f"snapshot/{head.step:020}", fill)
        self._fault("after snapshot")
        head.but(logged=0, segment=fresh_name()).write(self._local / "HEAD")
        self._fault("before drop")
        self._journal.drop(head.step)
        self._fault("before drop of snapshots")
        for name in self._durable.list("snapshot"):
            if int(name) < head.step:
                self._durable.delete(f"snapshot/{name}")

    def _rebuild(self, identity: str, old: Head | None) -> Head:
        """Make the local state anew from the durable folder."""
        path = self._local / "HEAD"
        editions = [int(there.suffix[1:]) for there in self._local.glob("state.*")]
        head = Head(-1, True, max(editions, default=-1) + 1, 0, fresh_name(), identity, boot()).write(path)
        self._fault("before rebuild")
        self._store = None
        for edition in editions:
            shutil.rmtree(self._local / f"state.{edition}")
        store = self._open(head)
        if snapshots := self._durable.list("snapshot"):
            with self._durable.open(f"snapshot/{snapshots[-1]}") as source:
                for step in range(len(self._runs)):
                    self._output(step).write_bytes(source.read(int.from_bytes(source.read(8), "little")))
                store.restore(source)
            head = head.but(step=int(snapshots[-1]))
        self._fault("inside rebuild")
        for step, messages in self._journal.read(after=head.step):
            self._output(step).write_bytes(self._runs[step % len(self._runs)](store, messages))
            head = head.but(step=step, logged=head.logged + sum(map(len, messages)))
        self._fault("after replay")
        return head.but(dirty=False).write(path)

    def _open(self, head: Head) -> Store:
        """The store of the head's edition: a rebuild elsewhere leaves older mappings of ours on dead files."""
        if self._store is None or self._edition != head.edition:
            self._store = Store(self._layout, Mapped(self._local / f"state.{head.edition}"))
            self._edition = head.edition
        return self._store

    def _identity(self) -> str:
        """The name that the durable folder was given when it was first used, after comparing fingerprints."""
        text = self._durable.read("identity")
        if text is None:
            made = json.dumps({"identity": fresh_name(), "fingerprint": self._fingerprint}).encode()
            self._durable.create("identity", lambda sink: sink.write(made))
            text = self._durable.read("identity") or made
        known = json.loads(text)
        if known["fingerprint"] != self._fingerprint:
            raise ForeignState(self._place, self._fingerprint, known["fingerprint"])
        return str(known["identity"])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self._local / "lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
