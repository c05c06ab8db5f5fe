"""Table functions where no program registers them: a jar and a configuration line for spark-sql."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from squallpy.runtime.spark.sql_extension import CLASS

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
QUERY = """SELECT feature, ROUND(coefficient, 3) FROM ols(TABLE(
    SELECT * FROM VALUES (1.0D, 2.0D, 5.0D), (2.0D, 3.0D, 8.0D), (3.0D, 1.0D, 5.0D) AS obs(a, b, y)), 'y')"""


def test_spark_sql_has_the_functions(tmp_path: Path) -> None:
    around = os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    subprocess.run(
        [sys.executable, "-m", "squallpy.runtime.spark.sql_extension", "squallpy.jar"],
        cwd=tmp_path, env=around, check=True,
    )  # fmt: skip
    options = {
        "spark.sql.extensions": CLASS, "spark.sql.catalogImplementation": "in-memory", "spark.ui.enabled": "false"
    }  # fmt: skip
    home = Path(pyspark.__file__).parent
    line = [str(home / "bin" / "spark-sql"), "--master", "local[1]", "--jars", "squallpy.jar"]
    line += [word for name, value in options.items() for word in ("--conf", f"{name}={value}")]
    around["SPARK_HOME"] = str(home)
    ran = subprocess.run([*line, "-e", QUERY], cwd=tmp_path, env=around, capture_output=True, text=True, check=False)
    assert ran.stdout == "a\t1.0\nb\t2.0\n", ran.stderr
