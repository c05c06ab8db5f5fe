"""The making of Spark's class-data archive for this host's Java and Spark.

python -m squallpy.runtime.spark.make_class_data_archive
"""

import sys
import tempfile
from pathlib import Path

from squallpy.runtime.spark.class_data_archive import archive_path
from squallpy.runtime.spark.java import Java, find_java
from squallpy.runtime.spark.micro_batch_loop import StreamJob, run
from squallpy.runtime.spark.spark_session import start
from squallpy.runtime.spark.worker_tasks import Reports

_PATIENCE = 120  # seconds for Java to write it


def make_archive(java: Java) -> Path:
    """Run a small stream while Java archives the classes that it loads."""
    path = archive_path(java)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        ids = Path(folder) / "fresh.jsa"
        cluster = start("local[2]", {"spark.driver.extraJavaOptions": f"-XX:ArchiveClassesAtExit={ids}"})
        try:
            job = StreamJob(3, 2, 2, _nothing, _empty, str(Path(folder) / "checkpoint"))
            run(cluster.session, job, lambda batch, outputs, times: True)
        finally:
            cluster.stop(_PATIENCE)
        ids.replace(path)
    return path


def _nothing(batch: int, split: int) -> list[tuple[int, bytes]]:
    return [(0, b"")]


def _empty(batch: int, partition: int, stage: int, messages: list[bytes]) -> tuple[list[tuple[int, bytes]], Reports]:
    return [(0, b"")], ()


def main() -> int:
    """Make the archive unless it exists; failures only warn."""
    java = find_java()
    if not archive_path(java).exists():
        try:
            make_archive(java)
        except Exception as error:
            sys.stderr.write(f"Spark will start more slowly, its classes could not be archived: {error}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
