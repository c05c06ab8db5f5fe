"""The Spark session: which settings, and why; started quietly, stopped without leaving a process behind.

    with start("local[2]") as cluster:
        run(cluster.session, job, on_batch)

Spark's own talk goes to a file (`cluster.log`) unless it is asked for: stdout carries data only, and stderr is ours.
"""

import logging
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import py4j
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import SparkSession

import squallpy
from squallpy.base.errors import SquallError
from squallpy.runtime.spark.archive import reading_options
from squallpy.runtime.spark.gateway import is_submitted, submitted_gateway
from squallpy.runtime.spark.java import Java, find_java
from squallpy.runtime.spark.masters import ATTEMPTS, look_for, with_attempts
from squallpy.runtime.spark.package import UNPACKED, packed

_PATIENCE, _HURRY = 10, 3  # seconds for a JVM to end by itself, and when the user does not want to wait
_PY4J = str(Path(py4j.__file__).parent)
_DYING = 1  # seconds from when a JVM does not answer any more until the system calls it dead

# Measured on 2 cores, two Python stages per batch: 0.29 s with Spark's defaults (and our daemon), 0.06 s with these.
SETTINGS = {
    "spark.app.name": "squallpy",
    # Python workers fork from a process that has loaded everything (see daemon.py)
    "spark.python.daemon.module": "squallpy.runtime.spark.daemon",
    "spark.python.worker.reuse": "true",
    # Over TCP each task waits 40 ms for a delayed acknowledgement (Nagle's algorithm): 0.29 → 0.18 s per batch
    "spark.python.unix.domain.socket.enabled": "true",
    # Local checkpoint files: without, each is written a second time as a checksum that can survive a crash alone
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Payloads are packed by us; compressing them again costs more than a local disk or network saves
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    # The JVM makes room for a whole block to tell tasks a few kilobytes: 4 MB of the 8 that a small batch takes
    "spark.broadcast.blockSize": "512k",
    # Only the last batch is ever looked back at
    "spark.sql.streaming.minBatchesToRetain": "8",
    "spark.sql.streaming.numRecentProgressUpdates": "8",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "16",
    "spark.ui.retainedStages": "16",
    "spark.ui.retainedTasks": "256",
    "spark.sql.ui.retainedExecutions": "4",
    # Executors log what the driver does (see `_agree`): a sixth of the work of a small task was to say what it does
    "spark.executor.syncLogLevel.enabled": "true",
    # A partition would rather wait for the host of its state than be rebuilt on another (later for as long as batches
    # take, see placement.py); and only its state counts, not from where most of its rows come
    "spark.locality.wait": "30s",
    "spark.shuffle.reduceLocality.enabled": "false",
    # What an executor has sent is gone with it: to be sent again at once, not to be asked for during 15 s
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.stage.maxConsecutiveAttempts": "16",
    "spark.task.maxFailures": str(ATTEMPTS),
}

# Where the driver's JVM also does the work.
LOCAL_SETTINGS = {
    # No look at host names or networks, which fails on some laptops
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}

# Few objects, short lives, no hot loops of Spark's: the first compiler and the simplest collector start sooner and
# leave the cores to Python (0.085 → 0.06 s per batch, and the first one a third faster). A driver that only plans is no
# other: its second compiler was seen to take 0.5 s of a core for each of the first batches. A small batch makes 5 MB of
# objects; what lives on, and so what a collection costs, hardly depends on how many there were: with 48 MB for young
# ones every eighth batch waits 5 ms, with 160 every thirtieth 10, most of the slowest twentieth, with 320 each
# sixtieth 15. Old ones have as much from the start, or what is left of a smaller heap: they are collected in 80 ms.
_FIRST_COMPILER, _COLLECTOR = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"
_YOUNG = "-Xmn320m -XX:OldSize=320m -XX:+IgnoreUnrecognizedVMOptions"  # NB: -Xms may not be more than the heap
_SMALL_JVM = f"{_FIRST_COMPILER} {_COLLECTOR}"


@dataclass
class Cluster:
    """A running Spark session and the JVM behind it, which is ours unless spark-submit brought it."""

    session: SparkSession
    log: Path | None
    """What Spark said; None where it says it to stderr."""
    _process: subprocess.Popen[bytes] | None
    _gateway: Any
    _room: tempfile.TemporaryDirectory[str] | None

    def stop(self, patience: float = _PATIENCE) -> None:
        """Ends the session, its JVM (killed after `patience` seconds) and its Python workers. Safe to call again."""
        with _sigint_untouched(), suppress(Exception):  # NB: a JVM that is gone cannot say goodbye
            self.session.stop()
        if self._process:
            with suppress(Exception):
                self._gateway.shutdown()
            _forget_gateway()
            _end(self._process, patience)
        if self._room:
            self._room.cleanup()

    def kill(self) -> None:
        """Ends the JVM without a word to Spark: a call to it may have been cut short, and no other is answered."""
        if self._process:
            _forget_gateway()
            _end(self._process, _HURRY)
        if self._room:
            self._room.cleanup()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, SquallError) and self._process:
            how = _ended_by_itself(self._process)
            self.stop()
            if how is not None:
                raise _gone(how, self.log) from error
        elif error is None or isinstance(error, (Exception, KeyboardInterrupt)):
            self.stop()
        else:
            self.kill()


def start(master: str = "local[2]", settings: Mapping[str, str] | None = None, verbose: bool = False) -> Cluster:
    """Starts Spark; `settings` are Spark's own and win over ours; `verbose` lets Spark talk to stderr.

    Under spark-submit the JVM is there already, and its master and Java options stand. SQ8001 without a fit Java,
    SQ8002 if Spark does not start.
    """
    if is_submitted():
        gateway, process, log = submitted_gateway(), None, None
        conf = SparkConf(_jvm=gateway.jvm)
        master = conf.get("spark.master") or master
        look_for(master)
        conf.setAll(list(settings_for(master, dict(conf.getAll()) | dict(settings or {})).items()))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        room = _room()
    else:
        look_for(master)
        java, room = find_java(), _room()
        conf = SparkConf(loadDefaults=False).setAll(list(settings_for(master, settings or {}, java).items()))
        os.environ["JAVA_HOME"] = str(java.home)
        # NB: the environment is the only way to tell these to a context made in this process
        if master.startswith("local"):
            os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
            conf.setIfMissing("spark.python.unix.domain.socket.dir", room.name)  # Spark forgets to remove them
        else:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        log = None if verbose else Path(room.name) / "spark.log"
        with _opened(log) as out:
            try:
                gateway = _launch(conf, out)
            except SquallError:
                raise
            except Exception as error:
                raise _no_start(error, log) from error
        process = gateway.proc
    try:
        with _sigint_untouched():
            session = SparkSession(SparkContext(gateway=gateway, conf=conf))
    except BaseException as error:
        _forget_gateway()
        how = _ended_by_itself(process) if process and isinstance(error, Exception) else None
        if process:
            _end(process, _PATIENCE if isinstance(error, Exception) else _HURRY)
        if isinstance(error, Exception):
            raise (_no_start(error, log) if how is None else _gone(how, log)) from error
        raise
    _hush_python(session)
    if not process:
        _hush(gateway.jvm)
    if not master.startswith("local"):
        _agree(session)
    return Cluster(session, log, process, gateway, room)


def settings_for(master: str, extra: Mapping[str, str], java: Java | None = None) -> dict[str, str]:
    """All Spark settings for a master, `extra` last.

    settings_for("local[2]", {})["spark.master"]   →  "local[2,4]"
    """
    settings = SETTINGS | {"spark.master": with_attempts(master), "spark.executor.extraJavaOptions": _SMALL_JVM}
    if master.startswith("local"):
        settings |= LOCAL_SETTINGS
        # Workers find the squallpy that runs here, however it got onto this interpreter's path
        paths = [str(Path(squallpy.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    elif "spark.archives" not in extra:
        settings |= {"spark.archives": f"{packed()}#{UNPACKED}", "spark.executorEnv.PYTHONPATH": UNPACKED}
    key = "spark.driver.extraJavaOptions"
    return {**settings, **extra, key: java_options(java, extra.get(key, ""))}


def java_options(java: Java | None, more: str = "") -> str:
    """Of the driver's JVM: what it logs, how it starts soon and stays small, then `more`.

    NB: a JVM with two collectors does not start.
    """
    options = [f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}", _FIRST_COMPILER]
    options += [] if re.search(r"-XX:\+Use\w+GC\b", more) else [_COLLECTOR, _YOUNG]
    return " ".join(filter(None, (*options, reading_options(java) if java else "", more)))


def _launch(conf: SparkConf | None, out: Any) -> Any:
    """Start a JVM; it is killed if that is interrupted. NB: PySpark tells its process only when it has answered."""
    launched: list[subprocess.Popen[bytes]] = []

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        launched.append(subprocess.Popen(*arguments, **options))
        return launched[-1]

    java_gateway.Popen = popen  # type: ignore[attr-defined, assignment]
    try:
        return java_gateway.launch_gateway(conf, {"stdout": out, "stderr": out})  # type: ignore[no-untyped-call]
    except BaseException as error:
        for process in launched:
            if isinstance(error, Exception) and process.poll() == -signal.SIGKILL:
                raise _gone(-signal.SIGKILL, None) from error
            process.kill()
            process.wait()
        raise
    finally:
        java_gateway.Popen = subprocess.Popen  # type: ignore[attr-defined]


def _hush(jvm: Any) -> None:
    """What log4j2.properties says of the end of a replay, in a JVM that logs as its user has set it up."""
    log4j = jvm.org.apache.logging.log4j
    loggers = "sql.execution.streaming.runtime.MicroBatchExecution", "scheduler.DAGScheduler"
    for logger, level in zip(loggers, (log4j.Level.OFF, log4j.Level.ERROR), strict=True):
        log4j.core.config.Configurator.setLevel(f"org.apache.spark.{logger}", level)


def _hush_python(session: SparkSession) -> None:
    """Have py4j and PySpark print no tracebacks of their own about a JVM that is gone, which `_gone` tells.

    NB: py4j logs a part of that under the name of no one, so it has to be told from what others log.
    """
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_not_py4j)
    server = session.sparkContext._accumulatorServer
    server.handle_error = _ignore  # type: ignore[method-assign, assignment]


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)


def _ignore(*_: object) -> None: ...


def _agree(session: SparkSession) -> None:
    """Has executors log no more than the driver, those that are to come, too."""
    context = session.sparkContext
    assert context._jvm is not None
    context.setLogLevel(context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())


def _room() -> tempfile.TemporaryDirectory[str]:
    # NB: names of sockets have room for about a hundred letters, of which Spark takes 42
    crowded = len(tempfile.gettempdir()) > 32
    return tempfile.TemporaryDirectory(prefix="squallpy-", dir="/tmp" if crowded else None, ignore_cleanup_errors=True)


@contextmanager
def _opened(log: Path | None) -> Iterator[Any]:
    if log is None:
        yield sys.__stderr__
        return
    with log.open("wb") as out:
        yield out


@contextmanager
def _sigint_untouched() -> Iterator[None]:
    """PySpark's context takes SIGINT for itself and cancels all jobs on it; ours finishes the batch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _no_start(error: Exception, log: Path | None) -> SquallError:
    """The one line that names the cause: the JVM's first word if it never answered, else the Java exception's."""
    said = log.read_text(errors="replace").splitlines() if log and log.exists() else []
    java = [line.removeprefix(": ") for line in str(error).splitlines() if line.startswith(": ")]
    talk = [line for line in said if line.strip() and not line.startswith(("WARNING", "Picked up", "\t"))]
    cause = (java or talk or [str(error) or type(error).__name__])[0].removeprefix('Exception in thread "main" ')
    cause = re.sub(r"^[\w.$]+(Exception|Error): ", "", cause).strip().rstrip(".")
    return SquallError("SQ8002", f"Spark did not start: {cause}", hint="squall doctor looks for the cause")


def _forget_gateway() -> None:
    # PySpark keeps the gateway in the class, so that the next context would talk to a JVM that is gone
    SparkContext._gateway = None
    SparkContext._jvm = None


def _ended_by_itself(process: subprocess.Popen[bytes]) -> int | None:
    """The status of a JVM that has ended before anyone told it to; None of one that runs."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(_DYING)
    return None


def _gone(status: int, log: Path | None) -> SquallError:
    """The one line for a JVM that ended in the middle of a run."""
    if status == -signal.SIGKILL:
        how, hint = "was killed", "as the system does when memory is short: free some, or --conf spark.driver.memory=1g"
    else:
        how, hint = _last_words(status, log), "give it more memory: --conf spark.driver.memory=4g"
    again = "the same command goes on from a --checkpoint, and begins anew without"
    return SquallError("SQ8007", f"Spark's JVM {how}", hint=f"{hint}; {again}")


def _last_words(status: int, log: Path | None) -> str:
    """How a JVM ended that nobody killed."""
    said = log.read_text(errors="replace") if log and log.exists() else ""
    if "OutOfMemoryError" in said:
        return "ran out of memory"
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def _end(process: subprocess.Popen[bytes], patience: float) -> None:
    if process.stdin:
        process.stdin.close()  # Spark's JVM ends when its driver does, which it sees by this pipe
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
