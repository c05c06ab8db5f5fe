"""The table functions as an extension of Spark, for sessions that no Python program of ours begins: spark-sql, servers.

    python -m squallpy.runtime.spark.sql_extension squallpy.jar
    spark-sql --jars squallpy.jar --conf spark.sql.extensions=squallpy.TableFunctions

The jar has the functions pickled by name, so that Python workers have to find squallpy, of the Python that wrote it.
"""

import os
import sys
import zipfile
from pathlib import Path

from pyspark import cloudpickle
from pyspark.java_gateway import launch_gateway

from squallpy.runtime.spark.java import find_java
from squallpy.runtime.spark.table_functions import FUNCTIONS

CLASS = "squallpy.TableFunctions"
_SOURCE = Path(__file__).with_name("TableFunctions.java")


def write_extension(path: Path) -> None:
    """Write the jar, compiled by the compiler that Spark brings; SQ8001 without Java."""
    os.environ["JAVA_HOME"] = str(find_java().home)
    gateway = launch_gateway()  # type: ignore[no-untyped-call]
    try:
        compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
        compiler.cook(_SOURCE.read_text(encoding="utf-8"))
        classes = {name: bytes(code) for name, code in dict(compiler.getBytecodes()).items()}
    finally:
        gateway.shutdown()
    with zipfile.ZipFile(path, "w") as jar:
        for name, code in classes.items():
            jar.writestr(f"{name.replace('.', '/')}.class", code)
        for name, function in FUNCTIONS.items():
            jar.writestr(f"squallpy/{name}", cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
        jar.writestr("squallpy/names", " ".join(FUNCTIONS))
        jar.writestr("squallpy/version", "{}.{}".format(*sys.version_info))


if __name__ == "__main__":
    write_extension(Path(sys.argv[1]))
