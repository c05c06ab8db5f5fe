"""A built wheel on the cluster, by spark-submit: executors get the package from the driver, and no other way."""

import subprocess
from pathlib import Path

import pytest

from squallpy.testing.standalone_cluster import Standalone
from tests.runs import printed, undisturbed, write
from tests.terminal.wheel import printed_line, unpacked_wheel, without_us

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]


def differential_the_line_of_a_wheel_runs_on_a_cluster(tmp_path: Path) -> None:
    script, out, installed = write(tmp_path / "room"), tmp_path / "out", unpacked_wheel(tmp_path / "wheel")
    # NB: workers that do not know where the repository is
    with Standalone(tmp_path / "standalone", environment={"PYTHONPATH": ""}) as cluster:
        options = ("--batch-rows", "50", "--mode", "changes", "--out", str(out), "--format", "csv")
        line = printed_line(installed, script.parent, "q.sql", "--master", cluster.master, *options)
        environment = without_us() | {"SPARK_LOCAL_IP": "127.0.0.1"}
        ran = subprocess.run(line, shell=True, cwd=script.parent, env=environment, capture_output=True, text=True)
        assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr
        pythons = [
            Path(place) for worker in cluster.workers for place in worker.folder.glob("work/*/*/squallpy-*/squallpy")
        ]
        assert pythons and all((place / "grammar" / "script.lark").exists() for place in pythons)
    assert printed(out) == undisturbed(script)
