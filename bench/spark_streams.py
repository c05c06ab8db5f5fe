"""The cost of Spark's own streams: the same JSON lines by a watched folder of ours, a data source, and `readStream`.

python -m bench.spark_streams [files] [rows]      seconds of a whole run, and of a file, on Spark; all in one run
"""

import json
import sys
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from unittest.mock import patch

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.spark import executor
from squallpy.runtime.spark.spark_session import start
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

SOURCES = {
    "json, watched": "json OPTIONS (path '{folder}', watch 'true', maxFilesPerTrigger '1')",
    "spark": "spark OPTIONS (format 'json', path '{folder}', maxFilesPerTrigger '1')",
}


class Counting(IgnoringSink):
    """A sink that counts batches."""

    def __init__(self) -> None:
        self.batches = 0

    def batch(self, number: int, deletes: object, inserts: object) -> None:
        self.batches += 1


def main(files: int = 20, rows: int = 10_000) -> None:
    """Print a line for each source."""
    with (
        TemporaryDirectory() as folder,
        start("local[2]", {}) as cluster,
        patch.object(executor, "start", lambda *_: nullcontext(cluster)),
    ):
        path = Path(folder) / "in"
        path.mkdir()
        for number in range(files):
            lines = (json.dumps({"k": n % 100, "v": n}) for n in range(rows))
            (path / f"{number}.json").write_text("\n".join(lines) + "\n")
        for turn in range(2):
            for name, using in SOURCES.items():
                script = f"CREATE STREAM r (k BIGINT, v BIGINT) USING {using.format(folder=path)};"
                script += " SELECT k, COUNT(*) AS n, SUM(v) AS s FROM r GROUP BY k;"
                sink, began = Counting(), perf_counter()
                options = RunOptions(batch_rows=rows, changes=True, trigger=BatchTrigger.parse("available-now"))
                ScriptSession(Path(folder) / "q.sql", None, script).run(options, sink, observer=Observer())
                seconds = perf_counter() - began
                if turn:
                    print(f"{name:15} {seconds:6.2f} s  {seconds / files:6.3f} s a file  {sink.batches} batches")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
