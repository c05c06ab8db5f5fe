"""The spark-submit command that runs a script: `squall submit` runs it, `--print` shows it.

    spark/bin/spark-submit --master spark://host:7077 … …/squallpy/terminal/spark_main.py query.sql --batch-rows 1000

Settings that Spark needs before its JVM starts are in the command; `cluster.start` sets the others, as in any run.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark

import squallpy
from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass
from squallpy.runtime.spark.java import Java, find_java
from squallpy.runtime.spark.masters import check_reachable, with_attempts
from squallpy.runtime.spark.package_archive import UNPACKED, package_archive
from squallpy.runtime.spark.spark_session import LOCAL_SETTINGS, SETTINGS, java_options

PROGRAM = Path(squallpy.__file__).parent / "terminal" / "spark_main.py"


@dataclass(frozen=True, slots=True)
class SubmitCommand:
    """A command, with the environment variables that it needs and lacks."""

    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """Format the command for a shell."""
        return " ".join(
            [*(f"{name}={shlex.quote(value)}" for name, value in self.environment), shlex.join(self.command)]
        )


def submit_command(
    script: Path,
    options: Sequence[str],
    master: str,
    deploy_mode: str,
    given: Sequence[str],
    environment: Mapping[str, str] = os.environ,
) -> SubmitCommand:
    """Build the spark-submit command; `options` are those of `squall run`, `given` those of spark-submit, which win.

    SQ8001 without a suitable Java, SQ8003 if the master does not answer, SQ8004 without a spark-submit.
    """
    submit, java = spark_submit(environment), find_java(environment)
    check_reachable(master, environment)
    line = [str(submit), "--master", with_attempts(master), "--deploy-mode", deploy_mode]
    line += ["--name", SETTINGS["spark.app.name"]]
    if master.startswith("local"):
        line += ["--driver-memory", LOCAL_SETTINGS["spark.driver.memory"]]
    if deploy_mode == "client":
        line += ["--driver-java-options", java_options(java)]
        line += ["--conf", f"spark.pyspark.driver.python={sys.executable}"]
    else:  # NB: the driver is on another host, to which the script and the package are sent
        line += ["--files", str(script)]
        if "--archives" not in {option.partition("=")[0] for option in given}:
            line += [
                "--archives",
                f"{package_archive()}#{UNPACKED}",
                "--conf",
                f"spark.executorEnv.PYTHONPATH={UNPACKED}",
            ]
            line += ["--conf", f"spark.yarn.appMasterEnv.PYTHONPATH={UNPACKED}"]
    where = str(script) if deploy_mode == "client" else script.name
    return SubmitCommand((*line, *given, str(PROGRAM), where, *options), _missing_variables(java, environment))


def spark_submit(environment: Mapping[str, str] = os.environ) -> Path:
    """Find spark-submit: that of SPARK_HOME, else that of the installed pyspark."""
    home = environment.get("SPARK_HOME")
    path = (Path(home) if home else Path(pyspark.__file__).parent) / "bin" / "spark-submit"
    if not os.access(path, os.X_OK):
        hint = "set SPARK_HOME to Spark's folder" if home else "install pyspark again, or set SPARK_HOME"
        raise SquallError("SQ8004", f"no spark-submit: {path} does not exist or is not executable", hint=hint)
    return path


def _missing_variables(java: Java, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Set JAVA_HOME, where Spark by itself would choose another Java or none."""
    home = environment.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else shutil.which("java", path=environment.get("PATH", os.defpath))
    same = found is not None and Path(found).resolve().parent.parent == java.home
    return () if same else (("JAVA_HOME", str(java.home)),)
