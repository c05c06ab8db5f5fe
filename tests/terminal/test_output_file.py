"""Where a run writes: local files only, and nothing that is there and no regular file is replaced."""

import os
import stat
import subprocess
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from squallpy.base.errors import SquallError
from squallpy.base.local_paths import local_path, output_path, scheme_of
from squallpy.runtime.sinks.output_file import AppendedFile, write_whole
from tests.terminal.conftest import ENVIRONMENT, QUERY, SQUALL, STREAM, Squall

LOCAL = ("--backend", "local")
RESULT = "user,total\nann,1.75\nbob,2.25\n"
OUTPUTS = ["--out", "--metrics", "--late", "--profile"]


@pytest.mark.parametrize(
    ("place", "path"),
    [
        ("r.csv", "r.csv"),
        ("10:30.csv", "10:30.csv"),
        ("a:b/c", "a:b/c"),
        ("C:/x", "C:/x"),
        ("./s3:/x", "s3:/x"),
        ("file:/tmp/r", "/tmp/r"),
        ("file:///tmp/r", "/tmp/r"),
        ("FILE:///tmp/r", "/tmp/r"),
        ("file://localhost/tmp/r", "/tmp/r"),
        ("file://LOCALHOST/tmp/a%20%C3%A9%3F", "/tmp/a é?"),
        ("~/r", f"{Path.home()}/r"),
        ("~nobody-by-that-name/r", "~nobody-by-that-name/r"),
    ],
)
def test_paths_and_file_uris_name_local_files(place: str, path: str) -> None:
    assert local_path(place) == Path(path) == output_path(place, "--out")


@pytest.mark.parametrize(
    ("place", "scheme"),
    [
        ("postgresql://me:pw@h:5432/db", "postgresql"),
        ("postgresql+psycopg://h/db", "postgresql+psycopg"),
        ("jdbc:postgresql://h/db", "jdbc:postgresql"),
        ("s3://bucket/r.csv", "s3"),
        ("S3A://bucket/r.csv", "s3a"),
        ("dbfs:/r.csv", "dbfs"),
        ("https://h/r.csv", "https"),
        ("fsspec+file:///tmp/r", "fsspec+file"),
        (" s3://bucket/r.csv", "s3"),
    ],
)
@pytest.mark.parametrize("option", [option for option in OUTPUTS if option != "--out"])
def test_other_schemes_are_refused_by_name(place: str, scheme: str, option: str, room: Path, squall: Squall) -> None:
    assert scheme_of(place) == scheme and local_path(place) is None
    before = sorted(room.rglob("*"))
    ended = squall("run", "q.sql", *LOCAL, option, place)
    assert (ended.status, ended.out) == (2, "")
    line = f"cannot write {option} {place}: {scheme} is not supported, only local files are"
    assert ended.err == f"SQ7003 {line}, name a path or a URI file:///…\n"
    assert sorted(room.rglob("*")) == before


@pytest.mark.parametrize(
    "place", ["file://host/tmp/r", "file:r", "file://", "file:///r?a=b", "file:///r#2", "file:///%00"]
)
def test_file_uris_that_name_no_file_here_are_refused(place: str, room: Path, squall: Squall) -> None:
    for option, code in (("--out", "SQ7003"), ("--metrics", "SQ7003"), ("--checkpoint", "SQ6003")):
        ended = squall("run", "q.sql", *LOCAL, option, place)
        assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
        assert ended.err.startswith(code), ended.err
    script = (room / "q.sql").read_text()
    (room / "q.sql").write_text(script.replace("'clicks.csv'", f"'{place}'"))
    assert squall("run", "q.sql", *LOCAL).err.startswith("SQ4001 q.sql:1:")


@pytest.mark.parametrize("option", [*OUTPUTS, "--checkpoint"])
@pytest.mark.parametrize("place", ["", "  "])
def test_nothing_is_no_place(place: str, option: str, squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL, option, place)
    assert ended.status == 2 and ended.err.startswith(f"SQ7003 {option} has an empty name")


def test_sources_and_checkpoints_take_file_uris(room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text((room / "q.sql").read_text().replace("'clicks.csv'", f"'file:{room}/clicks.csv'"))
    ended = squall(
        "run", "q.sql", *LOCAL, "--checkpoint", f"file:{room}/kept", "--out", f"file://localhost{room}/r.csv"
    )
    assert (ended.status, ended.err) == (0, "")
    assert (room / "r.csv").read_text() == RESULT
    assert (room / "kept" / "made-for").exists()
    assert not (room / "file:").exists()


def test_a_source_needs_a_path(room: Path, squall: Squall) -> None:
    (room / "q.sql").write_text((room / "q.sql").read_text().replace("'clicks.csv'", "''"))
    assert squall("run", "q.sql", *LOCAL).err.startswith('SQ7002 q.sql:2:24: option "path" is empty')


def test_a_local_dir_is_local(squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL, "--checkpoint", "kept", "--set", "local_dir=s3://b/x")
    assert ended.status == 2 and ended.err.startswith(
        "SQ6003 cannot keep state in the local_dir s3://b/x: only a folder"
    )


def read_fifo(path: Path) -> tuple[threading.Thread, list[bytes]]:
    os.mkfifo(path)
    got: list[bytes] = []
    thread = threading.Thread(target=lambda: got.append(path.read_bytes()))
    thread.start()
    return thread, got


@pytest.mark.parametrize("way", ["itself", "a link", "a link to a link"])
def test_a_fifo_is_written_and_stays(way: str, room: Path, squall: Squall) -> None:
    reader, got = read_fifo(room / "fifo")
    (room / "link").symlink_to("fifo")
    (room / "further").symlink_to(room / "link")
    given = {"itself": "fifo", "a link": "link", "a link to a link": "further"}[way]
    ended = squall("run", "q.sql", *LOCAL, "--out", given)
    reader.join()
    assert (ended.status, ended.err, got) == (0, "", [RESULT.encode()])
    assert (room / "fifo").is_fifo() and (room / "link").is_symlink() and (room / "further").is_symlink()


def test_a_fifo_takes_parquet_and_all_queries(room: Path, squall: Squall) -> None:
    reader, got = read_fifo(room / "fifo")
    assert squall("run", "q.sql", *LOCAL, "--out", "fifo", "--format", "parquet").status == 0
    reader.join()
    assert pq.read_table(pa.BufferReader(got[0])).column("user").to_pylist() == ["ann", "bob"]
    (room / "fifo").unlink()
    (room / "q.sql").write_text(STREAM + QUERY + "SELECT COUNT(*) AS n FROM clicks;\n")
    reader, got = read_fifo(room / "fifo")
    assert squall("run", "q.sql", *LOCAL, "--out", "fifo").status == 0
    reader.join()
    assert got == [(RESULT + "n\n3\n").encode()]
    assert sorted(path.name for path in room.iterdir()) == ["clicks.csv", "fifo", "q.sql"]


@pytest.mark.parametrize("option", ["--metrics", "--late", "--profile"])
def test_other_outputs_write_a_fifo_too(option: str, room: Path, squall: Squall) -> None:
    reader, got = read_fifo(room / "fifo")
    ended = squall("run", "q.sql", *LOCAL, option, "fifo", "--checkpoint", "kept")
    reader.join()
    assert ended.status == 0 and got[0]
    assert (room / "fifo").is_fifo()
    reader, got = read_fifo(room / "again")
    assert squall("run", "q.sql", *LOCAL, option, "again", "--checkpoint", "kept").status == 0  # resumed: nothing read
    reader.join()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
@pytest.mark.parametrize("option", OUTPUTS)
def test_a_device_stays_one(option: str, room: Path, squall: Squall) -> None:
    """As root, who may rename a file over it."""
    os.mknod(room / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (room / "q.sql").write_text(STREAM + QUERY + QUERY)
    ended = squall("run", "q.sql", *LOCAL, option, "null")
    assert ended.status == 0
    assert (room / "null").is_char_device()
    assert sorted(path.name for path in room.iterdir()) == ["clicks.csv", "null", "q.sql"]


@pytest.mark.parametrize("target", ["pipe", "file"])
@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_descriptors_are_written(name: str, target: str, room: Path) -> None:
    command = [*SQUALL, "run", "q.sql", *LOCAL, "--out", name]
    if target == "pipe":
        ended = subprocess.run(command, cwd=room, env=ENVIRONMENT, capture_output=True, text=True)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, RESULT, "")
        return
    (room / "r").write_text("before\n")
    with (room / "r").open("a") as out:
        ended = subprocess.run(command, cwd=room, env=ENVIRONMENT, stdout=out, stderr=subprocess.PIPE, text=True)
    assert (ended.returncode, ended.stderr, (room / "r").read_text()) == (0, "", "before\n" + RESULT)


def test_links_are_followed_and_modes_stay(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "r").write_text("old")
    (tmp_path / "there" / "r").chmod(0o600)
    (tmp_path / "link").symlink_to("there/r")
    (tmp_path / "dangling").symlink_to("there/new")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("link", "dangling"):
        write_whole(tmp_path / name, lambda out: out.write(b"new"))
        assert (tmp_path / name).is_symlink() and (tmp_path / name).read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "there" / "r").stat().st_mode) == 0o600
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["new", "r"]
    with pytest.raises(SquallError, match=r"SQ7005 cannot write .*loop: too many levels of symbolic links"):
        write_whole(tmp_path / "loop", lambda out: out.write(b"new"))


def test_a_name_may_be_as_long_as_the_file_system_lets_it(room: Path, squall: Squall) -> None:
    name = "r" * 251 + ".csv"
    assert squall("run", "q.sql", *LOCAL, "--out", name).status == 0
    assert (room / name).read_text() == RESULT
    for option in OUTPUTS:
        ended = squall("run", "q.sql", *LOCAL, option, f"r{name}")
        assert (ended.status, ended.err) == (2, f"SQ7005 cannot write r{name}: file name too long\n")


def test_what_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("old")

    def fill(out: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(SquallError, match=r"SQ7005 cannot write .*no space left"):
        write_whole(tmp_path / "r", fill)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("r", "old")]


@pytest.mark.parametrize("option", ["--metrics", "--late", "--profile"])
def test_the_folder_of_what_is_told_besides_has_to_be_there(option: str, room: Path, squall: Squall) -> None:
    ended = squall("run", "q.sql", *LOCAL, option, "nowhere/f")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err == "SQ7005 cannot write nowhere/f: no folder nowhere, make it first\n"
    assert not (room / "nowhere").exists()


@pytest.mark.parametrize("option", ["--metrics", "--late"])
def test_two_runs_do_not_write_one_file(option: str, room: Path, squall: Squall) -> None:
    other = AppendedFile(room / "f")
    other.append(b"mine\n")
    ended = squall("run", "q.sql", *LOCAL, option, "f")
    assert (ended.status, ended.err) == (2, "SQ7005 another run writes f, name another, or wait for it\n")
    other.close()
    assert (room / "f").read_text() == "mine\n"


def test_two_outputs_are_two_files(room: Path, squall: Squall) -> None:
    (room / "link").symlink_to("f")
    ended = squall("run", "q.sql", *LOCAL, "--out", "f", "--metrics", "./link")
    assert (ended.status, ended.err) == (2, "SQ7003 --out and --metrics are the same file, give each its own\n")
