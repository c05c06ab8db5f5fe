"""The spark-submit line that runs a script: `squall submit` runs it, `--print` shows it.

    spark/bin/spark-submit --master spark://host:7077 … …/squallpy/terminal/submitted.py query.sql --batch-rows 1000

What Spark has to know before its JVM is up is in the line; the rest is set by `cluster.start`, as in any run.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark

import squallpy
from squallpy.base.errors import SquallError
from squallpy.runtime.spark.cluster import LOCAL_SETTINGS, SETTINGS, java_options
from squallpy.runtime.spark.java import Java, find_java
from squallpy.runtime.spark.masters import look_for, with_attempts
from squallpy.runtime.spark.package import UNPACKED, packed

PROGRAM = Path(squallpy.__file__).parent / "terminal" / "submitted.py"


@dataclass(frozen=True, slots=True)
class Line:
    """A command, and what it needs of the environment that is not there."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """As it can be pasted into a shell."""
        return " ".join(
            [*(f"{name}={shlex.quote(value)}" for name, value in self.environment), shlex.join(self.command)]
        )


def submit_line(
    script: Path,
    options: Sequence[str],
    master: str,
    deploy_mode: str,
    given: Sequence[str],
    environment: Mapping[str, str] = os.environ,
) -> Line:
    """`options` are those of `squall run`, `given` those of spark-submit, which win over ours.

    SQ8001 without a fit Java, SQ8003 if nobody is there, SQ8004 without a spark-submit.
    """
    submit, java = spark_submit(environment), find_java(environment)
    look_for(master, environment)
    line = [str(submit), "--master", with_attempts(master), "--deploy-mode", deploy_mode]
    line += ["--name", SETTINGS["spark.app.name"]]
    if master.startswith("local"):
        line += ["--driver-memory", LOCAL_SETTINGS["spark.driver.memory"]]
    if deploy_mode == "client":
        line += ["--driver-java-options", java_options(java)]
        line += ["--conf", f"spark.pyspark.driver.python={sys.executable}"]
    else:  # the driver is elsewhere: the script, and the package, go with it
        line += ["--files", str(script)]
        if "--archives" not in {option.partition("=")[0] for option in given}:
            line += ["--archives", f"{packed()}#{UNPACKED}", "--conf", f"spark.executorEnv.PYTHONPATH={UNPACKED}"]
            line += ["--conf", f"spark.yarn.appMasterEnv.PYTHONPATH={UNPACKED}"]
    where = str(script) if deploy_mode == "client" else script.name
    return Line((*line, *given, str(PROGRAM), where, *options), _missing(java, environment))


def spark_submit(environment: Mapping[str, str] = os.environ) -> Path:
    """That of SPARK_HOME, else that of the pyspark that is installed."""
    home = environment.get("SPARK_HOME")
    path = (Path(home) if home else Path(pyspark.__file__).parent) / "bin" / "spark-submit"
    if not os.access(path, os.X_OK):
        hint = "set SPARK_HOME to where Spark is" if home else "install pyspark again, or set SPARK_HOME"
        raise SquallError("SQ8004", f"no spark-submit: {path} is not there, or cannot be run", hint=hint)
    return path


def _missing(java: Java, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """JAVA_HOME, where Spark by itself would take another Java or none."""
    home = environment.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java", path=environment.get("PATH", os.defpath))
    same = found is not None and Path(found).resolve().parent.parent == java.home
    return () if same else (("JAVA_HOME", str(java.home)),)
