"""Settings of the session, and a session that cannot start."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from squallpy.runtime.spark.masters import with_attempts
from squallpy.runtime.spark.spark_session import settings_for


@pytest.mark.parametrize(
    ("master", "made"),
    [
        ("local", "local[1,4]"),
        ("local[2]", "local[2,4]"),
        ("local[*]", "local[*,4]"),
        ("local[2,1]", "local[2,1]"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
        ("spark://host:7077", "spark://host:7077"),
        ("yarn", "yarn"),
    ],
)
def test_local_masters_retry_tasks_too(master: str, made: str) -> None:
    assert with_attempts(master) == made


def test_the_users_settings_win() -> None:
    settings = settings_for("local[2]", {"spark.driver.memory": "5g", "spark.driver.extraJavaOptions": "-Dx=y"})
    assert settings["spark.driver.memory"] == "5g"
    assert settings["spark.driver.extraJavaOptions"].endswith(" -Dx=y")
    assert "log4j2" in settings["spark.driver.extraJavaOptions"]


def test_a_driver_has_one_collector() -> None:
    """A JVM that is told of two does not start."""
    for master in ("local[2]", "spark://host:7077"):
        key = "spark.driver.extraJavaOptions"
        assert "-XX:+UseSerialGC" in settings_for(master, {})[key]
        assert "Serial" not in settings_for(master, {key: "-XX:+UseG1GC"})[key]


def test_a_cluster_keeps_its_own_hosts_and_paths() -> None:
    settings = settings_for("spark://host:7077", {})
    assert "spark.driver.host" not in settings
    archive, name = settings["spark.archives"].split("#")
    assert Path(archive).exists() and settings["spark.executorEnv.PYTHONPATH"] == name
    own = {"spark.archives": "env.tar.gz#env"}
    assert settings_for("yarn", own).items() >= own.items()
    assert "spark.executorEnv.PYTHONPATH" not in settings_for("yarn", own)


@pytest.mark.spark
def test_the_session_is_quiet_and_says_what_it_is(cluster: Any, capfd: pytest.CaptureFixture[str]) -> None:
    assert cluster.session.sparkContext.master == "local[2,4]"
    assert cluster.session.range(3).count() == 3
    assert cluster.log is not None and cluster.log.exists()
    assert capfd.readouterr() == ("", "")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "cause"),
    [("{'spark.driver.memory': 'much'}", "much"), ("{'spark.master': 'moon'}", "Master must either be yarn")],
)
def test_a_session_that_cannot_start_says_why(setting: Any, cause: Any) -> None:
    program = f"from squallpy.runtime.spark.spark_session import start; start('local[2]', {setting})"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert said.stdout == ""
    told = said.stderr.splitlines()[-1]
    assert "SQ8002 Spark did not start: " in told and cause in told
