"""Program of spark-submit: `spark-submit [options] …/squallpy/terminal/submitted.py query.sql` is `squall run`
there."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python looks here first for what anyone imports: rather where the package is, than in this folder of it
    sys.path[0] = str(Path(__file__).parents[2])

    from squallpy.runtime.spark.gateway import java_stderr
    from squallpy.terminal.cli import main

    sys.stderr = java_stderr()
    sys.exit(main(["run", *sys.argv[1:]]))
