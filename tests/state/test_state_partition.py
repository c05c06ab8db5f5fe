"""Partitions under kills, retries and moves: every answer equals that of an undisturbed run."""

import errno
import mmap
import os
import random
import shutil
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from numpy.typing import NDArray

from squallpy.base.errors import SquallError
from squallpy.base.rings import Payload, Ring
from squallpy.runtime.checkpoint import state_partition as partitions
from squallpy.runtime.checkpoint.durable_folder import ArrowDurable, LocalDurable
from squallpy.runtime.checkpoint.state_partition import StatePartition
from squallpy.runtime.kernels.payload_columns import pack
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.state import pool_storage
from squallpy.runtime.state.pool_storage import MappedStorage
from squallpy.runtime.state.state_store import PoolLayout, Store, StoreLayout

LAYOUT = StoreLayout(
    (PoolLayout("sums", 1, Payload((Ring.REAL, Ring.COUNT))), PoolLayout("rows", 2, Payload((Ring.COUNT,)), ((0,),)))
)
BATCHES = 24
POINTS = [
    "before dirty",
    "before log",
    "before run",
    "before output",
    "before clean",
    "after clean",
    "inside snapshot",
    "after snapshot",
    "before drop",
    "before drop of snapshots",
    "before rebuild",
    "inside rebuild",
    "after replay",
]


def batch_messages(batch: int) -> list[bytes]:
    """Two messages: inserts, and deletes of half of what the batch before inserted."""

    def rows(of: int, step: int) -> NDArray[np.int64]:
        generator = np.random.default_rng(of)
        return np.stack([generator.integers(0, 9, 40), generator.integers(0, 400, 40)], axis=1)[::step]

    gone = rows(batch - 1, 2) if batch else np.empty((0, 2), np.int64)
    return [b"+" + rows(batch, 1).tobytes(), b"-" + gone.tobytes()]


Picture = tuple[list[list[Any]], list[str]]
Undisturbed = tuple[list[bytes], Picture]


def run(store: Store, messages: list[bytes]) -> bytes:
    """Maintain sums of thirds by name, in an order that shows in the last bits; answer with all that was touched."""
    answer = []
    for message in messages:
        keys = np.frombuffer(message[1:], np.int64).reshape(-1, 2)
        sign = 1 if message[:1] == b"+" else -1
        store["rows"].upsert(keys, np.full((len(keys), 1), sign))
        names = store.dictionary.intern(pa.array([f"n{key}" for key in keys[:, 0].tolist()], pa.string()))
        words = np.concatenate([pack(sign * keys[:, 1] / 3, Ring.REAL), keys[:, :1]], axis=1)
        store["sums"].upsert(names.reshape(-1, 1), words)
        found = cast(Pool, store["rows"]).slice(0, np.unique(keys[:, :1], axis=0))
        answer += [part.tobytes() for part in (*found, *store["sums"].rows())]
    return b"".join(answer)


@pytest.fixture(scope="module")
def undisturbed() -> Undisturbed:
    """The output of every batch, and the state at the end."""
    store = Store(LAYOUT)
    return [run(store, batch_messages(batch)) for batch in range(BATCHES)], picture(store)


def picture(store: Store) -> Picture:
    strings = store.dictionary.strings(np.arange(len(store.dictionary))).to_pylist()
    return [[part.tolist() for part in pool.rows()] for pool in store.values()], strings


def make(root: Path, host: str = "a", stages: int = 1, **options: Any) -> StatePartition:
    options = {"snapshot_every": 3000, "fingerprint": "plan 1", **options}
    return StatePartition(root / host, str(root / "durable"), LAYOUT, [run] * stages, **options)


def apply(partition: StatePartition, batch: int, stages: int) -> bytes:
    """A batch whose messages come to one stage after the other, the last of them to the last."""
    return b"".join(partition.apply(batch, messages, stage) for stage, messages in enumerate(parts(batch, stages)))


def parts(batch: int, stages: int) -> list[list[bytes]]:
    """The messages of a batch by stage."""
    return [batch_messages(batch)] if stages == 1 else [[message] for message in batch_messages(batch)]


def killing(point: str, hit: int) -> Callable[..., Any]:
    """A fault that kills this process the `hit`-th time it comes to a point."""
    left = [hit]

    def fault(here: str) -> None:
        if here == point:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return fault


def child(root: Path, start: int, stages: int = 1, **options: Any) -> tuple[int, Any]:
    """A forked worker that applies batches from `start` on; (process, pipe of length-prefixed outputs)."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.close(read)
            partition = make(root, stages=stages, **options)
            for batch in range(start, BATCHES):
                output = apply(partition, batch, stages)
                os.write(write, struct.pack("<q", len(output)) + output)
        finally:
            os._exit(0)
    os.close(write)
    return process, open(read, "rb")


def outputs(pipe: Any) -> list[bytes]:
    """The complete outputs in a pipe that nobody writes to any more."""
    with pipe:
        data = pipe.read()
    at, found = 0, []
    while at + 8 <= len(data):
        (size,) = struct.unpack_from("<q", data, at)
        if at + 8 + size <= len(data):
            found.append(data[at + 8 : at + 8 + size])
        at += 8 + size
    return found


def finish(root: Path, answers: list[bytes], undisturbed: Undisturbed, stages: int = 1, **options: Any) -> None:
    """Ask for the rest, everything twice, as retries do; compare everything."""
    partition = make(root, stages=stages, **options)
    for batch in range(len(answers), BATCHES):
        answers.append(apply(partition, batch, stages))
        assert b"".join(partition.apply(batch, [], stage) for stage in range(stages)) == answers[batch]
    # All answers may have come from another host: then this one catches up here.
    assert apply(partition, BATCHES - 1, stages) == answers[-1]
    assert answers == undisturbed[0]
    assert picture(partition.store()) == undisturbed[1]


@pytest.mark.parametrize("stages", [1, 2])
def oracle_partition_equals_plain_store(tmp_path: Path, undisturbed: Undisturbed, stages: int) -> None:
    finish(tmp_path, [], undisturbed, stages)
    assert len(list((tmp_path / "durable" / "snapshot").iterdir())) == 2
    assert len(list((tmp_path / "durable" / "log").iterdir())) <= 2


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("hit", "stages"), [(1, 1), (3, 2)])
def fault_killed_at_every_point(tmp_path: Path, undisturbed: Undisturbed, point: str, hit: int, stages: int) -> None:
    rebuilding = point in ("before rebuild", "inside rebuild", "after replay")
    answers = []
    if rebuilding:  # there must be something to rebuild
        process, pipe = child(tmp_path, 0, stages, fault=killing("before clean", 9))
        answers = outputs(pipe)
        assert os.waitpid(process, 0)[1] == signal.SIGKILL and len(answers) == 8 // stages
        hit = 1
    process, pipe = child(tmp_path, len(answers), stages, fault=killing(point, hit))
    answers += outputs(pipe)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL, "the point was not reached"
    finish(tmp_path, answers, undisturbed, stages)


@pytest.mark.parametrize(("seed", "stages"), [(seed, 1 + seed % 2) for seed in range(6)])
def fault_killed_at_random_moments(tmp_path: Path, undisturbed: Undisturbed, seed: int, stages: int) -> None:
    chance, answers, patience = random.Random(seed), [], 0.004
    while len(answers) < BATCHES:
        patience *= 1.2  # else a slow machine never gets anywhere
        process, pipe = child(tmp_path, len(answers), stages, host=chance.choice("aab"))
        time.sleep(chance.uniform(0, patience))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        answers += outputs(pipe)
        assert answers == undisturbed[0][: len(answers)]
    finish(tmp_path, answers, undisturbed, stages)


@pytest.mark.parametrize("lost", [1, 20, 500])
def fault_torn_log_record(tmp_path: Path, undisturbed: Undisturbed, lost: int) -> None:
    """Killed inside the write of a log record: the record does not count and the batch is asked for again."""
    process, pipe = child(tmp_path, 0, fault=killing("before run", 6), snapshot_every=1 << 20)
    answers = outputs(pipe)
    os.waitpid(process, 0)
    (segment,) = (tmp_path / "durable" / "log").iterdir()
    os.truncate(segment, segment.stat().st_size - lost)
    finish(tmp_path, answers, undisturbed, snapshot_every=1 << 20)


def fault_moves_between_hosts(tmp_path: Path, undisturbed: Undisturbed) -> None:
    """A partition that wakes elsewhere, or comes back to stale files, or finds none, rebuilds itself."""
    there = {host: make(tmp_path, host) for host in "ab"}
    for batch in range(BATCHES):
        host = "aabbba"[batch % 6]
        if batch == 10:
            shutil.rmtree(tmp_path / "a")
            there["a"] = make(tmp_path, "a")
        assert there[host].apply(batch, batch_messages(batch)) == undisturbed[0][batch]
        other = there["b" if host == "a" else "a"]
        if batch % 4 == 1:  # a speculative copy of the task
            assert other.apply(batch, batch_messages(batch)) == undisturbed[0][batch]
    assert picture(there[host].store()) == undisturbed[1]


@pytest.mark.parametrize("changed", ["boot_id", "layout_stamp"])
def fault_local_files_of_before_count_for_nothing(
    changed: str, tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a reboot, and of another version, which lays pools out otherwise."""
    partition = make(tmp_path)
    answers = [partition.apply(batch, batch_messages(batch)) for batch in range(5)]
    for file in (tmp_path / "a").glob("state.*/pool*"):
        file.write_bytes(b"\xff" * file.stat().st_size)
    monkeypatch.setattr(partitions, changed, lambda: "x" * 36)
    finish(tmp_path, answers, undisturbed)


def fault_run_that_raises_leaves_no_trace(tmp_path: Path, undisturbed: Undisturbed) -> None:
    partition = make(tmp_path)
    partition.apply(0, batch_messages(0))

    def broken(store: Store, messages: list[bytes]) -> bytes:
        run(store, messages[:1])
        raise ValueError("no such luck")

    unlucky = StatePartition(tmp_path / "a", str(tmp_path / "durable"), LAYOUT, [broken], "plan 1")
    with pytest.raises(ValueError, match="luck"):
        unlucky.apply(1, batch_messages(1))
    finish(tmp_path, [undisturbed[0][0]], undisturbed)


def oracle_batches_cannot_be_skipped(tmp_path: Path) -> None:
    partition = make(tmp_path)
    partition.apply(0, batch_messages(0))
    told = r"SQ6005 the state before batch 2 is lost: .*/log has nothing of it, bring it"
    with pytest.raises(SquallError, match=told):
        partition.apply(2, batch_messages(2))
    partition.apply(1, batch_messages(1))


def oracle_foreign_state_is_refused(tmp_path: Path) -> None:
    make(tmp_path).apply(0, batch_messages(0))
    with pytest.raises(SquallError, match=r"SQ6001 .*belongs to plan 1, not to plan 2"):
        make(tmp_path, fingerprint="plan 2").apply(1, batch_messages(1))


def oracle_new_checkpoint_forgets_local_files(tmp_path: Path, undisturbed: Undisturbed) -> None:
    """The same local directory under a checkpoint that was wiped: a new life."""
    partition = make(tmp_path)
    partition.apply(0, batch_messages(3))
    shutil.rmtree(tmp_path / "durable")
    finish(tmp_path, [], undisturbed)


def differential_any_arrow_filesystem(
    tmp_path: Path, undisturbed: Undisturbed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where files cannot be appended to, every record is a file."""

    def arrow(place: str, writer: str) -> ArrowDurable:
        return ArrowDurable(pafs.LocalFileSystem(), place, writer)

    monkeypatch.setattr(partitions, "open_durable", arrow)
    process, pipe = child(tmp_path, 0, fault=killing("before clean", 11))
    answers = outputs(pipe)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL
    finish(tmp_path, answers, undisturbed, host="b")
    assert len(list((tmp_path / "durable" / "snapshot").iterdir())) == 2


def spoil(path: Path, how: str) -> None:
    """Damage a file."""
    data = bytearray(path.read_bytes())
    at = {"first": 0, "middle": len(data) // 2, "last": len(data) - 1, "cut": 0}[how]
    data[at] ^= 0x40
    path.write_bytes(data[: len(data) - 7] if how == "cut" else data)


def durable_files(root: Path, folder: str) -> list[Path]:
    return sorted((root / "durable" / folder).iterdir())


@pytest.mark.parametrize("how", ["first", "middle", "last", "cut"])
@pytest.mark.parametrize("stages", [1, 2])
def fault_damaged_snapshot_is_passed_over(tmp_path: Path, undisturbed: Undisturbed, how: str, stages: int) -> None:
    """The one before and its log are kept for this."""
    partition = make(tmp_path, stages=stages)
    answers = [apply(partition, batch, stages) for batch in range(16)]
    older, newer = durable_files(tmp_path, "snapshot")
    spoil(newer, how)
    elsewhere = make(tmp_path, host="b", stages=stages)
    answers.append(apply(elsewhere, 16, stages))
    partition = make(tmp_path, host="c", stages=stages)
    assert apply(partition, 16, stages) == answers[-1]
    assert partition.rebuilt is None or not partition.rebuilt.damaged, "what is damaged is taken away"
    assert older.exists() and not newer.exists()
    finish(tmp_path, answers, undisturbed, stages, host="c")


def fault_rebuild_says_what_it_did(tmp_path: Path) -> None:
    partition = make(tmp_path)
    for batch in range(16):
        partition.apply(batch, batch_messages(batch))
        assert partition.rebuilt is None
    older, newer = durable_files(tmp_path, "snapshot")
    other = make(tmp_path, host="b")
    other.apply(16, batch_messages(16))
    assert (other.rebuilt.snapshot, other.rebuilt.replayed, other.rebuilt.damaged) == (
        int(newer.name),
        15 - int(newer.name),
        (),
    )
    spoil(newer, "middle")
    other = make(tmp_path, host="c")
    other.apply(17, batch_messages(17))
    assert other.rebuilt.snapshot == int(older.name) and other.rebuilt.damaged == (str(newer),)


def fault_both_snapshots_damaged(tmp_path: Path) -> None:
    """Refused, and nothing is taken away: a copy of either mends it."""
    partition = make(tmp_path)
    for batch in range(16):
        partition.apply(batch, batch_messages(batch))
    before = {path: path.read_bytes() for path in durable_files(tmp_path, "snapshot")}
    for path in before:
        spoil(path, "middle")
    with pytest.raises(SquallError, match=r"SQ6005 the state before batch 16 is lost: .*/snapshot/\d+ and .* damaged"):
        make(tmp_path, host="b").apply(16, batch_messages(16))
    mended, data = next(iter(before.items()))
    mended.write_bytes(data)
    make(tmp_path, host="b").apply(16, batch_messages(16))


@pytest.mark.parametrize("how", ["first", "middle", "cut"])
def fault_damaged_log(tmp_path: Path, undisturbed: Undisturbed, how: str) -> None:
    """A record that was applied and cannot be read is no torn one: the file is named, nothing goes on without it."""
    partition = make(tmp_path, snapshot_every=1 << 20)
    for batch in range(9):
        partition.apply(batch, batch_messages(batch))
    (segment,) = durable_files(tmp_path, "log")
    before = segment.read_bytes()
    spoil(segment, how)
    told = rf"SQ6005 the state before batch \d is lost: {segment} damaged, bring it back"
    with pytest.raises(SquallError, match=told):
        make(tmp_path, host="b", snapshot_every=1 << 20).apply(9, batch_messages(9))
    segment.write_bytes(before)
    finish(tmp_path, undisturbed[0][:9], undisturbed, host="b", snapshot_every=1 << 20)


@pytest.mark.parametrize("field", [8, 16])
def fault_damaged_head_of_a_log_record(tmp_path: Path, field: int) -> None:
    """A record does not pass for that of another batch."""
    partition = make(tmp_path, snapshot_every=1 << 20)
    for batch in range(5):
        partition.apply(batch, batch_messages(batch))
    (segment,) = durable_files(tmp_path, "log")
    data = bytearray(segment.read_bytes())
    data[field] ^= 1  # of the first record: its batch, or its size
    segment.write_bytes(data)
    with pytest.raises(SquallError, match="SQ6005"):
        make(tmp_path, host="b", snapshot_every=1 << 20).apply(5, batch_messages(5))


def fault_damaged_identity(tmp_path: Path) -> None:
    make(tmp_path).apply(0, batch_messages(0))
    (tmp_path / "durable" / "identity").write_bytes(b"\0\0")
    with pytest.raises(SquallError, match=r"SQ6005 the state is lost: .*/identity damaged"):
        make(tmp_path).apply(1, batch_messages(1))


@pytest.mark.parametrize("place", ["log", "snapshot", "state"])
def fault_no_room(tmp_path: Path, undisturbed: Undisturbed, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch that found none comes again when there is room, and nothing is lost."""
    monkeypatch.setattr(pool_storage, "_PIECE", mmap.PAGESIZE)
    partition = make(tmp_path)
    answers = [partition.apply(batch, batch_messages(batch)) for batch in range(4)]
    with monkeypatch.context() as full:
        fill_up(full, place)
        with pytest.raises(SquallError, match=r"SQ6006 cannot write state to .*: no (space left|room)") as error:
            for batch in range(4, BATCHES):
                answers.append(partition.apply(batch, batch_messages(batch)))
        assert "nothing is lost" in str(error.value)
    finish(tmp_path, answers, undisturbed)


def fill_up(full: pytest.MonkeyPatch, place: str) -> None:
    """No bytes left: half of what is written gets there."""

    def refuse(*_: Any, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "full")

    def half(write: Callable[..., Any]) -> Callable[..., Any]:
        def append(self: LocalDurable, name: str, parts: list[bytes]) -> None:
            write(self, name, [b"".join(parts)[:50]])
            refuse()

        return append

    if place == "log":
        full.setattr(LocalDurable, "append", half(LocalDurable.append))
    elif place == "snapshot":
        full.setattr(partitions, "write_snapshot", refuse)
    else:
        full.setattr(MappedStorage, "region", refuse)
        full.setattr(pool_storage._FileRegion, "grow", refuse)
