"""Files of batches: whole, and once, whatever is written again or was there before."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.base.errors import SquallError
from squallpy.catalog.sink_spec import SinkSpec
from squallpy.runtime.checkpoint import lease
from squallpy.runtime.sinks.file_format import FileFormat
from squallpy.runtime.sinks.outputs import Outputs
from squallpy.runtime.sinks.query_output import QueryOutput
from tests.sinks.conftest import contents, manifest
from tests.sinks.mortal_folders import Killed, Life, living

SCHEMA = pa.schema([("k", pa.int64())])


@pytest.fixture(autouse=True)
def nobody_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of leases are visible at once here."""
    for name, seconds in (("_SETTLE", 0.0), ("_LOOK", 0.05), ("_BEAT", 0.05), ("_STALE", 0.5)):
        monkeypatch.setattr(lease, name, seconds)


def query(number: int = 1) -> Any:
    return SimpleNamespace(number=number, sink=None, is_printed=True)


def rows(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64())})


@contextmanager
def opened(
    folder: Path | str, format: str = "csv", mode: str = "changes", resumed: bool = False, **options: str
) -> Iterator[QueryOutput]:
    """A sink that has begun."""
    given = {name: value for name, value in options.items() if value}
    spec = SinkSpec("o", format, given, mode, target=folder)
    with closing(Outputs((), Path())) as outputs, closing(outputs.open(spec, "id", resumed)) as sink:
        sink.begin(query(), SCHEMA, None)
        yield sink


@pytest.fixture(params=["path", "uri"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | str:
    """A folder of this host, as one and as one of any Arrow file system."""
    folder = tmp_path / "out"
    return folder if request.param == "path" else f"fsspec+file://{folder}"


@pytest.mark.parametrize("format", ["csv", "json", "parquet"])
@pytest.mark.parametrize("compact", ["", "2"])
def test_a_batch_that_comes_again_changes_nothing(place: Path | str, tmp_path: Path, format: str, compact: str) -> None:
    with opened(place, format, compact=compact) as first:
        for number in range(3):
            first.batch(number, rows(number), rows(number + 1))
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("[!.]*") if path.is_file()}
    with opened(place, format, resumed=True, compact=compact) as again:
        for number in range(3):
            again.batch(number, rows(number), rows(number + 1))
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("[!.]*") if path.is_file()} == before
    with opened(place, format, resumed=True, compact=compact) as last:
        last.batch(3, rows(3), rows(4))
        last.finish(stopped=False)
    assert manifest(tmp_path / "out")["shown"] == 4
    if format == "csv":
        text = "".join(contents(tmp_path / "out").values()).replace("batch,op,k\n", "")
        assert text == "".join(f"{number},-,{number}\n{number},+,{number + 1}\n" for number in range(4))


def test_a_new_run_takes_away_the_batches_of_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    for name in ("batch-000007.csv", "batch-000008.csv.tmp", "batch-000000-000003.json.gz", "notes.csv"):
        (tmp_path / name).touch()
    with opened(tmp_path, compact="9") as sink:
        sink.batch(0, rows(), rows(1))
        assert [path.name for path in (tmp_path / "_waiting").iterdir()] == ["batch-000000.csv"]
    with opened(tmp_path):
        assert list(contents(tmp_path)) == ["notes.csv"] and not list((tmp_path / "_waiting").iterdir())


@pytest.mark.parametrize("compact", ["", "3"])
@pytest.mark.parametrize("after", [False, True])
def fault_killed_at_each_operation(tmp_path: Path, compact: str, after: bool) -> None:
    """… and more batches come when the run goes on."""
    for operations in range(1000):
        folder, done, life = tmp_path / str(operations), 0, Life(operations, after)
        with suppress(Killed), living(life), opened(folder, compact=compact) as first:
            for number in range(5):
                first.batch(number, rows(), rows(number))
                done = number + 1
            first.finish(stopped=True)
        with opened(folder, resumed=True, compact=compact) as second:
            for number in range(done, 7):
                second.batch(number, rows(), rows(number))
            second.finish(stopped=True)
        text = "".join(contents(folder).values()).replace("batch,op,k\n", "")
        assert text == "".join(f"{number},+,{number}\n" for number in range(7))
        assert not list(folder.glob("_waiting/*")) and manifest(folder)["batches"] == manifest(folder)["shown"] == 7
        if life.left >= 0:
            break
    assert operations > 20


def fault_a_batch_that_was_shown_is_not_replaced(place: Path | str, tmp_path: Path) -> None:
    """Its run was killed before the manifest had it; the rows may come again in another order."""
    with suppress(Killed), living(Life(7, after=True)), opened(place) as first:
        first.batch(0, rows(), rows(1))
        first.batch(1, rows(), rows(2, 3))
    assert manifest(tmp_path / "out")["batches"] == 1
    with opened(place, resumed=True) as second:
        second.batch(1, rows(), rows(3, 2))
        second.batch(2, rows(), rows(4))
    assert contents(tmp_path / "out")["batch-000001.csv"] == "batch,op,k\n1,+,2\n1,+,3\n"
    assert len(contents(tmp_path / "out")) == 3


def fault_a_folder_of_another_sink_is_not_gone_on_with(tmp_path: Path) -> None:
    with opened(tmp_path) as sink:
        sink.batch(0, rows(), rows(1))
    for format, mode, compression in (("json", "changes", ""), ("csv", "append", ""), ("csv", "changes", "gzip")):
        with (
            pytest.raises(SquallError, match=r"SQ7005 .* has batches of another query, or of mode 'changes' as csv"),
            opened(tmp_path, format, mode, resumed=True, compression=compression),
        ):
            pass


def fault_batches_that_are_missing_are_not_passed_over(place: Path | str) -> None:
    """The checkpoint has given them, and the folder has gone since."""
    message = r"SQ7005 .*out has 0 batches, and the checkpoint has given 7"
    with opened(place, resumed=True) as sink, pytest.raises(SquallError, match=message):
        sink.batch(7, rows(), rows(1))


def fault_a_folder_that_vanishes_or_is_emptied(place: Path | str, tmp_path: Path) -> None:
    with opened(place) as sink:
        sink.batch(0, rows(), rows(1))
        (tmp_path / "out").rename(tmp_path / "moved")
        for _ in range(2):
            with pytest.raises(SquallError, match=r"SQ7005 .*batch 1") as caught:
                sink.batch(1, rows(), rows(2))
            assert str(caught.value).count("\n") == 0
            (tmp_path / "out").mkdir(exist_ok=True)
    if (tmp_path / "out").exists():
        for path in (tmp_path / "out").iterdir():
            path.unlink()
        (tmp_path / "out").rmdir()
    (tmp_path / "moved").rename(tmp_path / "out")
    with opened(place, resumed=True) as sink:
        sink.batch(1, rows(), rows(2))
    assert contents(tmp_path / "out") == {
        "batch-000000.csv": "batch,op,k\n0,+,1\n", "batch-000001.csv": "batch,op,k\n1,+,2\n",
    }  # fmt: skip


def fault_two_runs_on_one_folder(place: Path | str) -> None:
    with opened(place), pytest.raises(SquallError, match=r"SQ7005 another run writes .*out"), opened(place):
        pass
    with opened(place):
        pass


def fault_a_manifest_that_is_not_ours(tmp_path: Path) -> None:
    for text in ("", "{}", "[]", '{"version": 99, "format": "csv", "mode": "changes", "query": "id"}', "\0"):
        (tmp_path / "_manifest").write_text(text)
        with pytest.raises(SquallError, match=r"SQ7005 .*_manifest is no manifest of ours"), opened(tmp_path):
            pass


def test_a_result_is_written_at_the_end_only(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.parquet"
    for place in (path, f"fsspec+file://{path}"):
        with opened(place, "parquet", "final") as sink:
            sink.final(rows(1))
            sink.finish(stopped=True)
            assert not path.exists()
            sink.finish(stopped=False)
        assert pq.read_table(path).equals(rows(1))
        path.unlink()


def test_several_queries_have_places_of_their_own(tmp_path: Path) -> None:
    def places(out: Path | str, mode: str) -> list[object]:
        spec = SinkSpec("--out", "json", {}, mode, target=out)
        outputs = Outputs((query(1), query(2)), tmp_path, spec)
        return [found.target for found in (outputs.sink(query(1)), outputs.sink(query(2))) if found]

    assert places(Path("c"), "changes") == [Path("c/query-1"), Path("c/query-2")]
    assert places("s3://b/c?region=eu", "changes") == ["s3://b/c/query-1?region=eu", "s3://b/c/query-2?region=eu"]
    assert places(Path("c/r.json"), "final") == [Path("c/r-1.json"), Path("c/r-2.json")]
    assert places("s3://b/r.json?region=eu", "final") == ["s3://b/r-1.json?region=eu", "s3://b/r-2.json?region=eu"]
    assert places(Path("/dev/stdout"), "final") == [Path("/dev/stdout")] * 2


def test_formats() -> None:
    paths = ("a.CSV", "a.jsonl", "a.pq", "a", "a.txt", "a.json.gz", "a.gz", "a.csv.zst")
    assert [FileFormat.of(path).suffix for path in paths] == [
        "csv", "json", "parquet", "csv", "csv", "json.gz", "csv.gz", "csv.zst",
    ]  # fmt: skip
    assert FileFormat.of("a.csv", "parquet") == FileFormat("parquet")
    assert replace(FileFormat.of("a.csv.gz"), compression="none").suffix == "csv"
    with pytest.raises(SquallError, match="SQ7003 --format table is not for files"):
        FileFormat.of("a", "table")


@pytest.mark.parametrize(
    "place", ["postgresql://me:pw@h:5432/db", "nowhere://a/b", "https://h/r.csv", "fsspec+none:///a"]
)
@pytest.mark.parametrize("mode", ["final", "changes"])
def fault_a_file_system_that_is_unknown(place: str, mode: str) -> None:
    with pytest.raises(SquallError, match="SQ7005 cannot write ") as caught, opened(place, mode=mode):
        pass
    assert "\n" not in str(caught.value)


def fault_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for place, mode, why in (
        (tmp_path / "file", "changes", "file is a file, changes are written to a folder"),
        (tmp_path / "file" / "out", "changes", "cannot write .*out: not a directory"),
        (Path("/proc/none/out"), "changes", "cannot write /proc/none/out: no such file or directory"),
        (tmp_path, "final", "is a folder, the final result is one file"),
        (Path(""), "final", r"\. is a folder, the final result is one file"),
    ):
        with pytest.raises(SquallError, match=f"SQ7005 .*{why}"), opened(place, mode=mode):
            pass
