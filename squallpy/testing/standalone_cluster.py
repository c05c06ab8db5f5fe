"""A standalone cluster on loopback, started from PySpark's own classes: a master and workers, each as if on a host.

    with Standalone(root, workers=2) as cluster:
        cluster.master                    →  "spark://127.0.0.1:41235"
        cluster.workers[0].executors()    →  process ids of its executors

Each worker has an address of its own (127.0.0.2, 127.0.0.3, …), and folders of its own: Spark's and that of our state.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from squallpy.base.records import dataclass
from squallpy.runtime.spark.class_data_archive import archive_options
from squallpy.runtime.spark.java import find_java

T = TypeVar("T")
_PATIENCE = 60
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # several of them share two cores


@dataclass
class Service:
    """A running master or worker: the leader of a session of processes, which end with it."""

    name: str
    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    def says(self, text: str) -> bool:
        return text in self.log

    @property
    def state(self) -> Path:
        """Folder for the mapped files of state partitions on this worker."""
        return self.folder / "state"

    def executors(self) -> list[int]:
        """Process ids of the JVMs that run tasks here."""
        return [pid for pid, line in self._list_processes() if "CoarseGrainedExecutorBackend" in line]

    def pythons(self) -> list[int]:
        """Process ids of the Python daemon and its workers here."""
        return [pid for pid, line in self._list_processes() if "squallpy.runtime.spark.worker_daemon" in line]

    def stop(self) -> None:
        for pid in [self.process.pid, *(pid for pid, _ in self._list_processes())]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def _list_processes(self) -> list[tuple[int, str]]:
        """List (pid, command line) of the processes in the service's session, except its leader."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError, IndexError):
                session = int((place / "stat").read_text().rpartition(")")[2].split()[3])
                if session == self.process.pid and int(place.name) != session:
                    found.append((int(place.name), (place / "cmdline").read_text().replace("\0", " ")))
        return found


class Standalone:
    """A master and workers of one core each: of the tasks, or if `bound` of all that they do, each on another."""

    def __init__(
        self, root: Path, workers: int = 2, environment: Mapping[str, str] | None = None, bound: bool = False
    ) -> None:
        self._root, self._count, self._more = root, workers, dict(environment or {})
        self._cores = sorted(os.sched_getaffinity(0)) if bound else []
        self.services: list[Service] = []
        self.workers: list[Service] = []
        self.master = ""

    def __enter__(self) -> "Standalone":
        try:
            quiet = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
            leader = self._start("master", "master.Master", quiet)
            self.master = wait(lambda: re.search(r"Starting Spark master at (spark://\S+)", leader.log))[1]
            for number in range(self._count):
                self.add_worker(number)
            for worker in self.workers:
                wait(partial(worker.says, "Successfully registered with master"))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def add_worker(self, number: int, environment: Mapping[str, str] | None = None) -> Service:
        """Start one more worker; `number` determines its address and its folders."""
        name = f"worker-{number}"
        folder = self._root / name
        options = ["--host", f"127.0.0.{number + 2}", "--port", "0", "--webui-port", "0", "--cores", "1"]
        options += ["--memory", "1g", "--work-dir", str(folder / "work"), self.master]
        local = {"SPARK_LOCAL_DIRS": str(folder / "spark"), "SQUALLPY_LOCAL_DIR": str(folder / "state")}
        only = {self._cores[number % len(self._cores)]} if self._cores else None
        worker = self._start(name, "worker.Worker", options, local | dict(environment or {}), only)
        self.workers.append(worker)
        return worker

    def stop(self) -> None:
        for service in reversed(self.services):
            service.stop()

    def _start(
        self,
        name: str,
        kind: str,
        options: list[str],
        environment: Mapping[str, str] | None = None,
        cores: set[int] | None = None,
    ) -> Service:
        """Start a service; it and all processes that it starts are bound to `cores`, if given."""
        folder = self._root / name
        for made in ("", "spark", "state", "work"):
            (folder / made).mkdir(parents=True, exist_ok=True)
        home, java = _spark_home(), find_java()
        settings = {
            **os.environ,
            "JAVA_HOME": str(java.home),
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"{_JVM} {archive_options(java)}",
            "PYSPARK_PYTHON": sys.executable,
            **self._more,
            **(environment or {}),
        }
        with (folder / "log").open("ab") as log:
            command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *options]
            bind = partial(os.sched_setaffinity, 0, cores) if cores else None
            process = subprocess.Popen(
                command, env=settings, stdout=log, stderr=log, start_new_session=True, preexec_fn=bind
            )
        self.services.append(Service(name, folder, process))
        return self.services[-1]


def _spark_home() -> Path:
    found = find_spec("pyspark")
    assert found and found.origin, "no PySpark here"
    return Path(found.origin).parent


def wait(look: Callable[[], T | None], patience: float = _PATIENCE) -> T:
    """Poll `look` until it returns something true, and return that."""
    end = time.monotonic() + patience
    while not (found := look()):
        assert time.monotonic() < end, "nothing came of it"
        time.sleep(0.02)
    return found
