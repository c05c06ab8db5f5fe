"""Checkpoints that this version and the one before have written: one goes on, the other is refused by name."""

import shutil
from pathlib import Path

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.runtime.checkpoint import checkpoint
from squallpy.script_session import RunOptions, ScriptSession
from tests.kept import Kept

WRITTEN = Path(__file__).parent / "checkpoints"  # by a run that was stopped after its third batch
FORMATS = sorted(int(path.name) for path in WRITTEN.iterdir() if path.is_dir())


def run(tmp_path: Path, format: int) -> Kept:
    """Go on from a copy of a checkpoint."""
    shutil.copytree(WRITTEN, tmp_path / "room")
    sink, room = Kept(), tmp_path / "room"
    options = RunOptions("local", batch_rows=9, changes=True, checkpoint=str(room / str(format)))
    ScriptSession(room / "q.sql", Settings(local_dir=str(tmp_path / "local"))).run(options, sink)
    return sink


def test_this_version_has_written_one() -> None:
    """Whoever changes what a checkpoint has, counts its format up and writes another one here."""
    assert FORMATS == [checkpoint._FORMAT - 1, checkpoint._FORMAT]


def test_one_of_this_version_goes_on(tmp_path: Path) -> None:
    sink, calm = run(tmp_path, FORMATS[-1]), Kept()
    ScriptSession(WRITTEN / "q.sql").run(RunOptions("local", batch_rows=9, changes=True), calm)
    assert min(sink.changes) == 3 and sink.rows == calm.rows == calm.kept_rows
    assert sink.changes == {number: rows for number, rows in calm.changes.items() if number > 2}


def fault_one_of_an_earlier_version(tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r"SQ6001 the checkpoint .*/9 was made by an earlier version, start in a new"):
        run(tmp_path, FORMATS[0])
