"""`squall run` as a program of spark-submit: `spark-submit [options] …/squallpy/terminal/spark_main.py query.sql`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # NB: Python searches the folder of a script first: replace it by the folder of the package
    sys.path[0] = str(Path(__file__).parents[2])

    from squallpy.runtime.spark.jvm_gateway import java_stderr
    from squallpy.terminal.cli import main

    sys.stderr = java_stderr()
    sys.exit(main(["run", *sys.argv[1:]]))
