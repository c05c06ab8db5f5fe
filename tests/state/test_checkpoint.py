"""Checkpoints: gone on from with the same plan, made anew for another, refused by name, on any file system."""

import errno
import json
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import join_path, local_path, show_uri
from squallpy.base.settings import Settings
from squallpy.logical.nodes import Query
from squallpy.runtime.checkpoint.checkpoint import CheckpointIdentity, is_used, open_checkpoint
from squallpy.runtime.checkpoint.checksummed_record import read_record, write_record
from squallpy.runtime.checkpoint.durable_folder import LocalDurable, open_durable
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.runtime.sources import replay
from squallpy.runtime.sources.replay import BackfillReplay, Replay
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.kept import Kept, Killed
from tests.runs import BATCHES, MANY_STAGES, write


class Seen(IgnoringSink):
    """Remembers the changes of each batch, and stops the run after one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.changes: dict[int, Any] = {}
        self.final_rows: list[str] | None = None
        self.stop, self._last = threading.Event(), last
        if last == -1:
            self.stop.set()

    def begin(self, query: Query, schema: pa.Schema, batches: int | None) -> None:
        assert batches == BATCHES

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        self.changes[number] = sorted(map(str, deletes.to_pylist())), sorted(map(str, inserts.to_pylist()))
        if number == self._last:
            self.stop.set()

    def final(self, table: pa.Table) -> None:
        self.final_rows = sorted(map(str, table.to_pylist()))


def run(script: Path, checkpoint: str | None, last: int | None = None, optimizer: bool = True) -> Seen:
    """Run a script in process, up to a batch (−1: one, whichever it is)."""
    settings = Settings(local_dir=str(script.parent / "local"), optimizer=optimizer)
    seen, session = Seen(last), ScriptSession(script, settings)
    options = RunOptions("local", batch_rows=50, changes=True, checkpoint=checkpoint)
    session.run(options, seen, seen.stop, observer=seen)
    return seen


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return write(tmp_path, MANY_STAGES)


def record(checkpoint: Path | str) -> dict[str, Any]:
    text = read_record(open_durable(str(checkpoint)), "made-for", str(checkpoint))
    assert text is not None
    return json.loads(text)


def another_plan(checkpoint: Path | str) -> None:
    """Make a checkpoint look like one of a plan for another number of partitions."""
    write_record(open_durable(str(checkpoint)), "made-for", json.dumps(record(checkpoint) | {"plan": "another"}))


@pytest.mark.parametrize("rows", [50, 120, 1_000_000])
def differential_another_plan_goes_on_from_the_input(script: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(replay, "LEAP_ROWS", rows)
    calm, folder = run(script, None), script.parent / "kept"
    changes = run(script, str(folder), 7).changes
    another_plan(folder)
    changes |= run(script, str(folder), -1).changes  # a batch and no more, of those that come again
    changes |= run(script, str(folder), 21).changes
    assert (record(folder)["generation"], record(folder)["before"]) == (1, 8)
    assert sorted(path.name for path in folder.iterdir()) == ["1", "inputs", "made-for"]
    another_plan(folder)
    last = run(script, str(folder))
    assert (record(folder)["generation"], record(folder)["before"]) == (2, 22)
    assert sorted(last.changes) == list(range(22, BATCHES))
    assert changes | last.changes == calm.changes and last.final_rows == calm.final_rows


def differential_other_passes_go_on_from_the_input(script: Path) -> None:
    """The same query with other passes has another program, not another answer."""
    calm, folder = run(script, None), str(script.parent / "kept")
    changes = run(script, folder, 3).changes | run(script, folder, 7, optimizer=False).changes
    last = run(script, folder)
    assert changes | last.changes == calm.changes and last.final_rows == calm.final_rows


@pytest.mark.parametrize("seed", range(6))
def differential_other_limits_of_batches(script: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """A run goes on with batches of another size, in whichever batch the one before was killed; another plan too."""
    monkeypatch.setattr(replay, "LEAP_ROWS", 200)
    random, folder, sink = Random(seed), script.parent / "kept", Kept()
    calm = run(script, None)
    for again in range(12):
        sink.dies_at = random.randrange(9) if again < 11 else None
        session = ScriptSession(
            script, Settings(local_dir=str(script.parent / "local"), optimizer=random.random() < 0.7)
        )
        options = RunOptions("local", batch_rows=random.choice([7, 50, 120]), changes=True, checkpoint=str(folder))
        with suppress(Killed):
            session.run(options, sink)
    assert sink.rows == calm.final_rows == sink.kept_rows


def differential_another_plan_when_all_is_done(script: Path) -> None:
    calm, folder = run(script, None), script.parent / "kept"
    assert run(script, str(folder)).changes == calm.changes
    another_plan(folder)
    again = run(script, str(folder))
    assert again.changes == {} and again.final_rows == calm.final_rows


@pytest.mark.parametrize("place", ["kept", "file://{}/kept", "fsspec+file://{}/kept"])
def differential_any_file_system(script: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    place = place.format(script.parent) if "://" in place else str(script.parent / place)
    if local_path(place) is None:
        monkeypatch.setattr(LocalDurable, "__init__", lambda *_: pytest.fail("past the file system"))
    calm = run(script, None)
    changes = run(script, place, 7).changes | run(script, place, 8).changes
    another_plan(place)
    last = run(script, place)
    assert changes | last.changes == calm.changes and last.final_rows == calm.final_rows


@pytest.mark.parametrize(("format", "age"), [(8, "an earlier"), (1_000, "a later")])
def fault_checkpoint_of_another_version_is_refused(script: Path, format: int, age: str) -> None:
    """Texts that tell queries apart may be others, so it is not said to be of another query."""
    folder = script.parent / "kept"
    run(script, str(folder), 7)
    made_for = record(folder) | {"format": format, "query": "another"}
    write_record(open_durable(str(folder)), "made-for", json.dumps(made_for))
    with pytest.raises(
        SquallError, match=rf"SQ6001 the checkpoint .*/kept was made by {age} version, start in a new folder"
    ):
        run(script, str(folder))
    assert record(folder) == made_for


def fault_input_that_has_grown_is_refused(script: Path) -> None:
    """Which rows make up a batch depends on how many there are."""
    run(script, str(script.parent / "kept"), 7)
    with (script.parent / "s.csv").open("a") as more:
        more.write("1,name 1\n")
    with pytest.raises(
        SquallError, match=r"SQ6001 s has 501 rows, and had 500 when the checkpoint .*/kept was made, start"
    ):
        run(script, str(script.parent / "kept"))


@pytest.mark.parametrize("file", ["made-for", "0/fingerprint", "0/batch", "0/partition-0/identity"])
def fault_damaged_records_are_named(script: Path, file: str) -> None:
    """Whatever the damage: 12 batches that read 1 or 13 would be another state, and so another answer."""
    folder = script.parent / "kept"
    run(script, str(folder), 11)
    whole = (folder / file).read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in {0, 1, len(whole) // 2, len(whole) - 1}]
    for damaged in (b"", b"{}", whole[:1], whole[: len(whole) // 2], whole[:-1], whole + b"0", *flipped):
        (folder / file).write_bytes(damaged)
        shutil.rmtree(script.parent / "local", ignore_errors=True)
        with pytest.raises(SquallError, match=rf"SQ6005 the state is lost: {folder}/{file} damaged, "):
            run(script, str(folder))


@pytest.mark.parametrize("file", ["0/batch", "0/fingerprint"])
def fault_how_far_it_came_is_not_known_any_more(script: Path, file: str) -> None:
    folder = script.parent / "kept"
    run(script, str(folder), 11)
    (folder / file).unlink()
    with pytest.raises(SquallError, match=rf"SQ6005 the state is lost: {folder}/{file} damaged, "):
        run(script, str(folder))


def test_mapped_state_of_an_earlier_plan_goes(tmp_path: Path) -> None:
    """A run that was killed has left it, and none will take it up."""
    local = tmp_path / "local"

    def opened(plan: str) -> StateLocation:
        return open_checkpoint(str(tmp_path / "kept"), CheckpointIdentity("query", plan, {}), 1, str(local), 1 << 20)

    for plan in ("one", "another", "one"):
        (opened(plan).local / "partition-0").mkdir(parents=True)
        assert [path / "partition-0" for path in local.iterdir()] == [opened(plan).local / "partition-0"]


@pytest.mark.parametrize("place", ["nowhere://a/b", "fsspec+nothing:///a", "fsspec+file:///proc/none/kept"])
def fault_places_that_cannot_be_written_are_named(script: Path, place: str) -> None:
    with pytest.raises(SquallError, match=rf"^SQ6003 cannot keep state in the checkpoint {place.replace('+', '.')}: ."):
        run(script, place)


@pytest.mark.parametrize("number", range(9))
def fault_no_room_for_a_record(script: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Whichever it is, of the beginning or of a batch: it is said, and the same command goes on when there is room."""
    create, created, folder = LocalDurable.create, [], script.parent / "kept"

    def refuse(sink: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def full(self: LocalDurable, name: str, fill: Callable[..., Any]) -> None:
        created.append(name)
        create(self, name, fill if len(created) <= number else refuse)

    with monkeypatch.context() as disk:
        disk.setattr(LocalDurable, "create", full)
        with pytest.raises(SquallError, match=rf"SQ6006 cannot write state to {folder}/.*: no space left on device, "):
            run(script, str(folder))
    assert run(script, str(folder)).final_rows == run(script, None).final_rows


@pytest.mark.parametrize("left", [[], [".draft"], ["batch"], ["batch", "fingerprint"]])
def fault_a_beginning_that_was_cut_short(script: Path, left: list[str]) -> None:
    """Before the record of what the checkpoint was made for: it begins again."""
    folder = script.parent / "kept"
    (folder / "0").mkdir(parents=True)
    for name in left:
        (folder / "0" / name).touch()
    assert not is_used(str(folder))
    assert run(script, str(folder)).final_rows == run(script, None).final_rows


@pytest.mark.parametrize("mine", ["0", "0/mine", "1/batch"])
def fault_a_folder_that_only_looks_like_one(script: Path, mine: str) -> None:
    path = script.parent / "kept" / mine
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(SquallError, match=r"SQ6002 .*kept is not empty and not a checkpoint"):
        run(script, str(script.parent / "kept"))
    assert path.is_file()


def test_names_within_a_place() -> None:
    assert join_path("/a/b", "c") == "/a/b/c"
    assert join_path("s3://a/b/?region=eu", "c") == "s3://a/b/c?region=eu"
    odd = join_path("s3://me:pw@a/b?region=eu", "day=1/ä b%20?#.csv")
    assert odd == "s3://me:pw@a/b/day=1/%C3%A4%20b%2520%3F%23.csv?region=eu"
    assert show_uri(odd) == "s3://a/b/day=1/ä b%20?#.csv"
    assert show_uri(join_path("fsspec+file:///a", "b%20 c")) == "fsspec+file:///a/b%20 c"
    assert local_path("file:///a%20b/c") == Path("/a b/c") and local_path("s3://a/b") is None


def test_batches_that_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "LEAP_ROWS", 70)
    whole = Replay({"r": 100, "s": 300}, 20)
    again = BackfillReplay(whole, 7)
    assert [again.number(batch) for batch in range(4)] == [None, None, None, 7]
    assert again.batches == 3 + 13 and again.number(again.batches - 1) == whole.batches - 1
    ranges = [again.ranges(batch) for batch in range(again.batches)]
    for name, size in whole.sizes.items():
        assert [r[name][0] for r in ranges] == [0, *(r[name][1] for r in ranges[:-1])]
        assert ranges[-1][name][1] == size
    assert BackfillReplay(whole).ranges(5) == whole.ranges(5) and BackfillReplay(whole).batches == whole.batches
