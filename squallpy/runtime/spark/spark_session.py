"""The Spark session: its settings with their reasons, a quiet start, and an end that leaves no process behind.

    with start("local[2]") as cluster:
        run(cluster.session, job, on_batch)

Spark's own log goes to a file (`cluster.log`) unless `verbose`: stdout has data only, and stderr Squall's messages.
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
from pathlib import Path
from types import TracebackType
from typing import Any

import py4j
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.sql import SparkSession

import squallpy
from squallpy.base.errors import SquallError
from squallpy.base.events import INFO, SPARK, first_line, log_event
from squallpy.base.records import dataclass
from squallpy.runtime.spark.class_data_archive import archive_options
from squallpy.runtime.spark.java import Java, find_java
from squallpy.runtime.spark.jvm_gateway import is_submitted, submitted_gateway
from squallpy.runtime.spark.masters import ATTEMPTS, check_reachable, with_attempts
from squallpy.runtime.spark.package_archive import UNPACKED, package_archive

_PATIENCE, _HURRY = 10, 3  # seconds for a JVM to exit: normally, and when the user does not want to wait
_PY4J = str(Path(py4j.__file__).parent)
_DYING = 1  # seconds between a JVM's last answer and its exit status

# Measured on 2 cores, two Python stages per batch: 0.29 s with Spark's defaults (and this daemon), 0.06 s with these.
SETTINGS = {
    "spark.app.name": "squallpy",
    # Python workers fork from a process that has loaded everything (see worker_daemon.py)
    "spark.python.daemon.module": "squallpy.runtime.spark.worker_daemon",
    "spark.python.worker.reuse": "true",
    # Over TCP each task waits 40 ms for a delayed acknowledgement (Nagle's algorithm): 0.29 → 0.18 s per batch
    "spark.python.unix.domain.socket.enabled": "true",
    # Local checkpoint files: without, each is written a second time as a checksum that can survive a crash alone
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    # Payloads are already packed; compressing them again costs more than a local disk or network saves
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    # The JVM allocates a whole block to send tasks a few kilobytes: 4 MB of the 8 that a small batch takes
    "spark.broadcast.blockSize": "128k",
    # Recovery reads only the last batch
    "spark.sql.streaming.minBatchesToRetain": "8",
    "spark.sql.streaming.numRecentProgressUpdates": "8",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "16",
    "spark.ui.retainedStages": "16",
    "spark.ui.retainedTasks": "256",
    "spark.sql.ui.retainedExecutions": "4",
    # Executors log at the driver's level (see `_align_log_levels`): logging was a sixth of a small task's work
    "spark.executor.syncLogLevel.enabled": "true",
    # A partition waits for the host of its state instead of being rebuilt on another (later for as long as batches
    # take, see preferred_locations.py); and only its state counts, not from where most of its rows come
    "spark.locality.wait": "30s",
    "spark.shuffle.reduceLocality.enabled": "false",
    # An executor's exchange files die with it: recompute them at once instead of asking for them during 15 s
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "200ms",
    "spark.stage.maxConsecutiveAttempts": "16",
    "spark.task.maxFailures": str(ATTEMPTS),
}

# Where the driver's JVM also does the work.
LOCAL_SETTINGS = {
    # Without look-ups of host names, which fail on some laptops
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "2g",
}

# Few objects, short lives, no hot loops of Spark's: the first compiler and the simplest collector start sooner and
# leave the cores to Python (0.085 → 0.06 s per batch, the first one a third faster). The same holds for a driver that
# only plans: its second compiler takes 0.5 s of a core for each of the first batches. A small batch makes 5 MB of
# objects; the cost of a collection hardly depends on how many there were: with a young generation of 48 MB every eighth
# batch waits 5 ms, with 160 MB every thirtieth 10, with 320 MB each sixtieth 15, and the process is 130 MB larger. The
# old generation starts with twice as much, or with the rest of a smaller heap: collecting it takes 80 ms. Survivors
# take 7 MB. NB: no -Xms, which may not be more than a smaller heap.
_FIRST_COMPILER, _COLLECTOR = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"
_YOUNG = "-Xmn160m -XX:SurvivorRatio=16 -XX:OldSize=320m -XX:+IgnoreUnrecognizedVMOptions"
_SMALL_JVM = f"{_FIRST_COMPILER} {_COLLECTOR}"


@dataclass
class Cluster:
    """A running Spark session and the JVM behind it, which is ours unless spark-submit brought it.

    A session that was there before is used, and left as it is.
    """

    session: SparkSession
    log: Path | None
    """Spark's log; None where it goes to stderr."""
    _process: subprocess.Popen[bytes] | None
    _gateway: Any
    _temporary_folder: tempfile.TemporaryDirectory[str] | None
    _borrowed: bool = False

    def stop(self, patience: float = _PATIENCE) -> None:
        """End the session, its JVM (killed after `patience` seconds) and its Python workers. Safe to call again."""
        if self._borrowed:
            return
        with _keep_sigint_handler(), _logging_failure("session not stopped"):
            self.session.stop()
        if self._process:
            with _logging_failure("gateway not stopped"):
                self._gateway.shutdown()
            _forget_gateway()
            _terminate(self._process, patience)
        if self._temporary_folder:
            self._temporary_folder.cleanup()

    def kill(self) -> None:
        """End the JVM without a call to Spark: one may have been cut short, and then no other is answered."""
        if self._process:
            _forget_gateway()
            _terminate(self._process, _HURRY)
        if self._temporary_folder:
            self._temporary_folder.cleanup()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, Exception) and not isinstance(error, SquallError) and self._process:
            how = _exit_status(self._process)
            self.stop()
            if how is not None:
                raise _jvm_ended_error(how, self.log) from error
        elif error is None or isinstance(error, (Exception, KeyboardInterrupt)):
            self.stop()
        else:
            self.kill()


def start(master: str = "local[2]", settings: Mapping[str, str] | None = None, verbose: bool = False) -> Cluster:
    """Start Spark; `settings` are Spark's own and win over ours; `verbose` lets Spark log to stderr.

    Under spark-submit the JVM is there already, and its master and Java options stand. In a program that has a Spark
    session, that is used as it is, but for its log of queries that end. SQ8001 without a suitable Java, SQ8002 if Spark
    does not start.
    """
    if SparkContext._active_spark_context is not None:
        return adopt(SparkSession.builder.getOrCreate())
    if is_submitted():
        gateway, process, log = submitted_gateway(), None, None
        conf = SparkConf(_jvm=gateway.jvm)
        master = conf.get("spark.master") or master
        check_reachable(master)
        conf.setAll(list(settings_for(master, dict(conf.getAll()) | dict(settings or {})).items()))
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        folder = _temporary_folder()
    else:
        check_reachable(master)
        java, folder = find_java(), _temporary_folder()
        conf = SparkConf(loadDefaults=False).setAll(list(settings_for(master, settings or {}, java).items()))
        os.environ["JAVA_HOME"] = str(java.home)
        # NB: only the environment passes these to a context made in this process
        if master.startswith("local"):
            os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
            conf.setIfMissing("spark.python.unix.domain.socket.dir", folder.name)  # Spark forgets to remove them
        else:
            os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        log = None if verbose else Path(folder.name) / "spark.log"
        with _open_log(log) as out:
            try:
                gateway = _launch(conf, out)
            except SquallError:
                raise
            except Exception as error:
                raise _start_error(error, log) from error
        process = gateway.proc
    try:
        with _keep_sigint_handler():
            session = SparkSession(SparkContext(gateway=gateway, conf=conf))
    except BaseException as error:
        _forget_gateway()
        how = _exit_status(process) if process and isinstance(error, Exception) else None
        if process:
            _terminate(process, _PATIENCE if isinstance(error, Exception) else _HURRY)
        if isinstance(error, Exception):
            raise (_start_error(error, log) if how is None else _jvm_ended_error(how, log)) from error
        raise
    _quiet_python(session)
    if not process:
        _quiet_jvm(gateway.jvm)
    if not master.startswith("local"):
        _align_log_levels(session)
    return Cluster(session, log, process, gateway, folder)


def adopt(session: SparkSession) -> Cluster:
    """Use a running session of Spark's, which is left as it is."""
    _quiet_jvm(session.sparkContext._jvm)
    return Cluster(session, None, None, None, None, _borrowed=True)


def settings_for(master: str, extra: Mapping[str, str], java: Java | None = None) -> dict[str, str]:
    """Collect all Spark settings for a master, `extra` last.

    settings_for("local[2]", {})["spark.master"]   →  "local[2,4]"
    """
    settings = SETTINGS | {"spark.master": with_attempts(master), "spark.executor.extraJavaOptions": _SMALL_JVM}
    if master.startswith("local"):
        settings |= LOCAL_SETTINGS
        # Workers import the squallpy of this interpreter, wherever it is on the path
        paths = [str(Path(squallpy.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    elif "spark.archives" not in extra:
        settings |= {"spark.archives": f"{package_archive()}#{UNPACKED}", "spark.executorEnv.PYTHONPATH": UNPACKED}
    key = "spark.driver.extraJavaOptions"
    return {**settings, **extra, key: java_options(java, extra.get(key, ""))}


def java_options(java: Java | None, more: str = "") -> str:
    """Build the driver JVM's options for logging, a fast start and a small heap, then add `more`.

    NB: a JVM with two collectors does not start.
    """
    options = [f"-Dlog4j2.configurationFile={(Path(__file__).parent / 'log4j2.properties').as_uri()}", _FIRST_COMPILER]
    options += [] if re.search(r"-XX:\+Use\w+GC\b", more) else [_COLLECTOR, _YOUNG]
    return " ".join(filter(None, (*options, archive_options(java) if java else "", more)))


def _launch(conf: SparkConf | None, out: Any) -> Any:
    """Start a JVM and kill it if that is interrupted. NB: PySpark reveals its process only when it has answered."""
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
                raise _jvm_ended_error(-signal.SIGKILL, None) from error
            process.kill()
            process.wait()
        raise
    finally:
        java_gateway.Popen = subprocess.Popen  # type: ignore[attr-defined]


def _quiet_jvm(jvm: Any) -> None:
    """Set the log levels of log4j2.properties in a JVM whose logging its user has configured."""
    log4j = jvm.org.apache.logging.log4j
    loggers = "sql.execution.streaming.runtime.MicroBatchExecution", "scheduler.DAGScheduler"
    for logger, level in zip(loggers, (log4j.Level.OFF, log4j.Level.ERROR), strict=True):
        log4j.core.config.Configurator.setLevel(f"org.apache.spark.{logger}", level)


def _quiet_python(session: SparkSession) -> None:
    """Stop py4j and PySpark from printing tracebacks about a JVM that is gone, which `_jvm_ended_error` reports.

    NB: py4j logs a part of that to the root logger, so it is filtered by the file that it comes from.
    """
    logging.getLogger("py4j").propagate = False
    logging.getLogger().addFilter(_is_not_py4j)
    server = session.sparkContext._accumulatorServer
    server.handle_error = _ignore  # type: ignore[method-assign, assignment]


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)


def _ignore(*_: object) -> None: ...


def _align_log_levels(session: SparkSession) -> None:
    """Set the log level of all executors, later ones too, to the driver's."""
    context = session.sparkContext
    assert context._jvm is not None
    context.setLogLevel(context._jvm.org.apache.logging.log4j.LogManager.getRootLogger().getLevel().toString())


def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    # NB: the path of a socket has at most about a hundred letters, of which Spark takes 42
    crowded = len(tempfile.gettempdir()) > 32
    return tempfile.TemporaryDirectory(prefix="squallpy-", dir="/tmp" if crowded else None, ignore_cleanup_errors=True)


@contextmanager
def _open_log(log: Path | None) -> Iterator[Any]:
    if log is None:
        yield sys.__stderr__
        return
    with log.open("wb") as out:
        yield out


@contextmanager
def _keep_sigint_handler() -> Iterator[None]:
    """Keep the handler of SIGINT, with which PySpark's context would cancel all jobs; ours finishes the batch."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _start_error(error: Exception, log: Path | None) -> SquallError:
    """Name the cause in one line: the JVM's first output if it never answered, else the Java exception."""
    output = log.read_text(errors="replace").splitlines() if log and log.exists() else []
    java = [line.removeprefix(": ") for line in str(error).splitlines() if line.startswith(": ")]
    talk = [line for line in output if line.strip() and not line.startswith(("WARNING", "Picked up", "\t"))]
    cause = (java or talk or [str(error) or type(error).__name__])[0].removeprefix('Exception in thread "main" ')
    cause = re.sub(r"^[\w.$]+(Exception|Error): ", "", cause).strip().rstrip(".")
    return SquallError("SQ8002", f"Spark did not start: {cause}", hint="squall doctor looks for the cause")


@contextmanager
def _logging_failure(event: str) -> Iterator[None]:
    """Log an error in place of raising it: a JVM that has ended does not answer."""
    try:
        yield
    except Exception as error:
        log_event(SPARK, INFO, event, error=first_line(error))


def _forget_gateway() -> None:
    # PySpark stores the gateway in the class, so the next context would call a JVM that is gone
    SparkContext._gateway = None
    SparkContext._jvm = None


def _exit_status(process: subprocess.Popen[bytes]) -> int | None:
    """Return the exit status of a JVM that ended without being told to; None while it runs."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(_DYING)
    return None


def _jvm_ended_error(status: int, log: Path | None) -> SquallError:
    """Describe a JVM that ended in the middle of a run, in one line."""
    if status == -signal.SIGKILL:
        how, hint = "was killed", "as the system does when memory is short: free some, or --conf spark.driver.memory=1g"
    else:
        how, hint = _cause_of_end(status, log), "give it more memory: --conf spark.driver.memory=4g"
    again = "the same command resumes from a --checkpoint, and starts over without"
    return SquallError("SQ8007", f"Spark's JVM {how}", hint=f"{hint}; {again}")


def _cause_of_end(status: int, log: Path | None) -> str:
    """Describe the end of a JVM that nobody killed."""
    output = log.read_text(errors="replace") if log and log.exists() else ""
    if "OutOfMemoryError" in output:
        return "ran out of memory"
    return f"ended by signal {-status}" if status < 0 else f"ended with status {status}"


def _terminate(process: subprocess.Popen[bytes], patience: float) -> None:
    if process.stdin:
        process.stdin.close()  # Spark's JVM exits when this pipe closes
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
