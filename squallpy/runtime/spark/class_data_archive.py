"""The class-data archive of Spark: a session starts in half the time (3.5 → 1.8 s, first answer 9 → 5 s).

    python -m squallpy.runtime.spark.class_data_archive      makes the archive for this host's Java and Spark

Java calls it class data sharing. The archive (160 MB) is in the virtual environment, or else in the user's cache
folder. Java checks that it fits the jars and ignores it if it does not, so it may be missing, stale or deleted at any
time.
"""

import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import pyspark

from squallpy.runtime.spark.java import Java, find_java
from squallpy.runtime.spark.package_archive import cache_folder
from squallpy.runtime.spark.worker_tasks import Reports

_PATIENCE = 120  # seconds for Java to write it


def archive_path(java: Java) -> Path:
    """Compute the archive's path for this Java and this installation of Spark."""
    installed = sha256(f"{java.home} {Path(pyspark.__file__).parent}".encode()).hexdigest()[:12]
    return cache_folder() / f"spark-{pyspark.__version__}-java-{java.version}-{installed}.jsa"


def archive_options(java: Java) -> str:
    """Build the Java option that uses the archive; empty without one."""
    path = archive_path(java)
    # NB: Spark splits the options at blanks
    return f"-XX:SharedArchiveFile={path} -Xlog:cds=off" if path.exists() and " " not in str(path) else ""


def make_archive(java: Java) -> Path:
    """Run a small stream while Java archives the classes that it loads."""
    from squallpy.runtime.spark.micro_batch_loop import StreamJob, run
    from squallpy.runtime.spark.spark_session import start

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
