"""Bits that flip, and files that are cut, in a checkpoint and in what a killed run has left on a disk: the answer is
right, or the file is named."""

import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint import state_folders
from squallpy.runtime.checkpoint.partition_head import Head
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.runs import COFACTOR, MANY_STAGES, PAIRS, write


class Killed(Exception):
    """The end of a run that leaves everything as it is."""


class Seen(IgnoringSink):
    """Remembers changes and the final rows, and dies after a batch."""

    def __init__(self, last: int | None = None) -> None:
        self.changes: dict[int, Any] = {}
        self.rows: Any = None
        self._last = last

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        self.changes[number] = sorted(map(str, deletes.to_pylist())), sorted(map(str, inserts.to_pylist()))
        if number == self._last:
            raise Killed

    def final(self, table: pa.Table) -> None:
        self.rows = sorted(map(str, table.to_pylist()))


def run(script: Path, folder: Path | None, last: int | None = None) -> Seen:
    """Run a script until it dies after a batch, or to its end."""
    seen, session = Seen(last), ScriptSession(script, Settings(local_dir=str(script.parent / "local"), snapshot_mb=0))
    options = RunOptions("local", batch_rows=50, changes=True, checkpoint=str(folder) if folder else None)
    if last is None:
        session.run(options, seen)
    else:
        with pytest.raises(Killed):
            session.run(options, seen)
    return seen


def damage(path: Path, draw: random.Random) -> None:
    """Flip a bit, or cut a file."""
    data = bytearray(path.read_bytes())
    if draw.random() < 0.25 or not data:
        data = data[: draw.randrange(len(data) or 1)]
    else:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("query", "times"), [(MANY_STAGES, 12), (COFACTOR, 8), (PAIRS, 8)], ids=["many stages", "cofactor", "pairs"]
)
def fault_flips_in_all_that_a_killed_run_has_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str, times: int
) -> None:
    monkeypatch.setattr(state_folders, "is_memory", lambda _: False)  # files in memory are trusted as memory is
    script, draw = write(tmp_path, query), random.Random(11)
    calm = run(script, None)
    kept, local = tmp_path / "kept", tmp_path / "local"
    before = run(script, kept, 23).changes
    for folder in (kept, local):
        shutil.copytree(folder, tmp_path / f"{folder.name} as it was")
    named = 0
    for _ in range(times):
        for folder in (kept, local):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(tmp_path / f"{folder.name} as it was", folder)
        target = draw.choice((kept, local))
        files = [path for path in sorted(target.rglob("*")) if path.is_file()]
        path = draw.choice(files)
        damage(path, draw)
        try:
            after = run(script, kept)
        except SquallError as error:
            assert error.code == "SQ6005" and str(path.relative_to(tmp_path)) in str(error), (path, error)
            assert target == kept
            named += 1
        else:
            assert before | after.changes == calm.changes and after.rows == calm.rows, path
    assert 0 < named < times


def test_a_head_is_believed_whole_only(tmp_path: Path) -> None:
    path, head = tmp_path / "HEAD", Head(7, False, 3, 999, "s" * 36, "i" * 36, "b" * 36, "r" * 36, "l" * 36)
    head.write(path)
    assert Head.read(path) == head
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert Head.read(path) is None
    for size in range(len(data)):
        path.write_bytes(data[:size])
        assert Head.read(path) is None


def test_local_folders_are_the_users_own(tmp_path: Path) -> None:
    state_folders.make_private(tmp_path / "new")
    (tmp_path / "lax").mkdir(mode=0o777)
    state_folders.make_private(tmp_path / "lax")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("new", "lax")] == [0o700, 0o700]
    (tmp_path / "link").symlink_to("new")
    with pytest.raises(SquallError, match=r"SQ6003 .*another user's"):
        state_folders.make_private(tmp_path / "link")


def test_what_is_in_memory_is_known() -> None:
    assert not state_folders.is_memory(Path("/proc"))
    if Path("/dev/shm").is_dir():
        assert state_folders.is_memory(Path("/dev/shm") / "squallpy-nowhere")


def test_names_of_mounts_have_blanks_and_letters_of_all_kinds(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_bytes("ext4 / ext4 rw 0 0\nm /mnt/ä\\040€ tmpfs rw 0 0\n".encode() + b"n /mnt/\xff ext4 rw 0 0\n")
    found = [state_folders.is_memory(Path(name), mounts) for name in ("/mnt/ä €/x", "/mnt/ä", "/mnt/ä €2")]
    assert found == [True, False, False]
