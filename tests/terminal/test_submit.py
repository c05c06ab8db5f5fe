"""`squall submit`: the line of spark-submit, what is wrong before it runs, and a wheel that runs by it."""

import os
import shlex
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from squallpy.runtime.spark.masters import check_reachable
from squallpy.runtime.spark.package_archive import UNPACKED, package_archive
from squallpy.runtime.spark.submit import submit_command
from tests.terminal.conftest import ENVIRONMENT, ROOT, SQUALL, STREAM, Ended, Squall
from tests.terminal.wheel import printed_line, unpacked_wheel, without_us


@pytest.fixture
def nobody() -> Iterator[int]:
    """A port of this host on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.mark.parametrize(
    ("options", "status", "line"),
    [
        (
            "nowhere.sql",
            2,
            'SQ4001 cannot read the script nowhere.sql: no such file or directory, did you mean "q.sql"?',
        ),
        ("bad.sql", 2, 'SQ2003 bad.sql:3:8: unknown column "usr", did you mean "user"?'),
        ("q.sql --set partitons=3", 2, 'SQ7001 unknown setting "partitons", did you mean "partitions"?'),
        ("q.sql --mode live", 2, "SQ7003 --mode live needs a terminal on stdout, --mode changes or final"),
        ("q.sql r.sql", 2, 'SQ7004 unexpected argument "r.sql", options of spark-submit come after --'),
        (
            "q.sql --master yarn",
            3,
            "SQ8003 the address of YARN is not configured, set HADOOP_CONF_DIR to the folder of its site files",
        ),
        (
            "q.sql --master spark://127.0.0.1:{port}",
            3,
            "SQ8003 no master answers at spark://127.0.0.1:{port}: connection refused, look whether it runs, or name "
            "another with --master",
        ),
    ],
)
def golden_what_is_wrong_before_it_runs(
    options: str, status: int, line: str, nobody: int, room: Path, squall: Squall, monkeypatch: pytest.MonkeyPatch
) -> None:
    (room / "bad.sql").write_text(f"{STREAM}SELECT usr FROM clicks;")
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    ended = squall("submit", *options.format(port=nobody).split())
    assert ended == Ended(status, "", line.format(port=nobody) + "\n")


def golden_no_spark_submit(squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    line = "SQ8004 no spark-submit: /nowhere/bin/spark-submit does not exist or is not executable"
    assert squall("submit", "q.sql") == Ended(3, "", f"{line}, set SPARK_HOME to Spark's folder\n")


def test_a_run_does_not_wait_for_a_master_that_is_not_there(nobody: int, room: Path) -> None:
    """In a process of its own: one that has a session runs there, as after spark-submit."""
    line = [*SQUALL, "run", "q.sql", "--master", f"spark://127.0.0.1:{nobody}"]
    ended = subprocess.run(line, cwd=room, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("SQ8003 no master answers at spark://")


def test_one_of_several_masters_is_enough(nobody: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        check_reachable(f"spark://127.0.0.1:{nobody},127.0.0.1:{port}")
        check_reachable(f"k8s://http://127.0.0.1:{port}")
    check_reachable("local[2]")


def test_the_line_says_what_spark_has_to_know_before_it_starts(room: Path, squall: Squall) -> None:
    ended = squall("submit", "q.sql", "--batch-rows", "2", "--set", "splits=1", "--print", "--", "--conf", "a=b c")
    line = shlex.split(ended.out)
    program = line.index(str(ROOT / "squallpy" / "terminal" / "spark_main.py"))
    assert line[program + 1 :] == ["q.sql", "--batch-rows", "2", "--set", "splits=1"]
    assert line[program - 2 : program] == ["--conf", "a=b c"]
    assert line[line.index("--master") + 1] == "local[2,4]"


def test_what_spark_submit_says_is_what_we_say(room: Path, squall: Squall, monkeypatch: pytest.MonkeyPatch) -> None:
    (room / "bin").mkdir()
    (room / "bin" / "spark-submit").write_text("#!/bin/sh\necho 1\necho oh >&2\nexit 7\n")
    (room / "bin" / "spark-submit").chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(room))
    assert squall("submit", "q.sql") == Ended(7, "1\n", "oh\n")


def test_a_driver_in_the_cluster_takes_script_and_package_along(tmp_path: Path) -> None:
    environment = os.environ | {"HADOOP_CONF_DIR": str(tmp_path)}
    line = submit_command(Path("a/q.sql"), (), "yarn", "cluster", (), environment).command
    assert line[line.index("--files") + 1] == "a/q.sql" and line[-1] == "q.sql"
    archive, name = line[line.index("--archives") + 1].split("#")
    assert Path(archive).exists() and f"spark.executorEnv.PYTHONPATH={name}" in line
    own = ("--archives", "env.tar.gz#env", "--conf", "spark.pyspark.python=env/bin/python")
    line = submit_command(Path("a/q.sql"), (), "yarn", "cluster", own, environment).command
    assert line.count("--archives") == 1 and not any(UNPACKED in part for part in line)


def test_the_archive_is_the_package(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = package_archive(tmp_path)
    assert capsys.readouterr().err.splitlines()[-1].startswith("squallpy: packing ")
    assert package_archive(tmp_path) == archive and list(tmp_path.iterdir()) == [archive]
    assert capsys.readouterr().err == ""
    for number in range(20):
        os.utime(shutil.copy(archive, tmp_path / f"{UNPACKED}-{number}.zip"), (number, number))
    (tmp_path / f"{UNPACKED}-gone.zip").symlink_to("nothing")  # as one that another run deletes at this moment
    assert package_archive(tmp_path) == archive and len(list(tmp_path.iterdir())) == 8
    with zipfile.ZipFile(archive) as file:
        file.extractall(tmp_path / "there")
    there = [sys.executable, "-c", "import squallpy; print(squallpy.__file__); import squallpy.frontend.script"]
    ended = subprocess.run(there, cwd=tmp_path / "there", env=without_us(), capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == str(tmp_path / "there" / "squallpy" / "__init__.py")
    grammars = {path.name for path in (tmp_path / "there" / "squallpy" / "grammar").iterdir()}
    assert grammars == {path.name for path in (ROOT / "grammar").glob("*.lark")}


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_a_wheel_runs_by_the_line_that_it_prints(room: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    installed = unpacked_wheel(tmp_path_factory.mktemp("wheel"))
    line = printed_line(installed, room, "q.sql", "--batch-rows", "2", "--mode", "changes")
    assert str(installed) in line and str(ROOT / "squallpy") not in line  # but its .venv may be there
    ran = subprocess.run(line, shell=True, cwd=room, env=without_us(), capture_output=True, text=True, check=False)
    assert ran.stdout == "batch,op,user,total\n0,+,ann,1.50\n0,+,bob,2.25\n1,-,ann,1.50\n1,+,ann,1.75\n", ran.stderr
    assert ran.returncode == 0
    pages = {path.name for path in (installed / "squallpy" / "error_pages").iterdir()}
    assert pages == {path.name for path in (ROOT / "docs" / "errors").iterdir()}
