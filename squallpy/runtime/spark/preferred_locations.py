"""Preferred locations of partitions: hosts, each where its state is, as hints that Spark's scheduler follows.

    assign(4, {"a": 1, "b": 1}, ())                          →  ("a", "b", "a", "b")
    assign(4, {"b": 1, "c": 1}, ("a", "b", "a", "b"))        →  ("c", "b", "c", "b")     a is gone, c has come

Spark sends a task of an exchange to any free executor. But a task prefers the hosts that one of its inputs prefers: so
an empty row with a preferred host is zipped with each partition's messages.

A new executor first has to load Python and the kernels, for seconds. No batch waits for that: it warms up with a task
of its own, and gets no other until that is done.
"""

import threading
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from time import monotonic, sleep

from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession

from squallpy.base.errors import SquallError
from squallpy.base.events import DEBUG, SPARK, WARNING, first_line, log_event
from squallpy.base.records import dataclass
from squallpy.runtime.checkpoint.state_folders import StateLocation
from squallpy.runtime.spark.planned_job import StageFunction, map_stage, preferred_hosts, zip_partitions

Hosts = Mapping[str, int]
"""Cores of Spark by host name."""

_PATIENCE = 60  # seconds for a master to give us an executor
_LOOK = 0.05
_LEAST_WAIT, _START = 0.3, 1.0  # NB: each stage waits for itself


def assign(partitions: int, hosts: Hosts, before: Sequence[str]) -> tuple[str, ...]:
    """Assign a host to each partition: the previous one, unless it is gone or busier than another would become."""
    assert hosts, "nowhere to go"
    assigned = list(before) or [""] * partitions
    loads = Counter(dict.fromkeys(hosts, 0)) | Counter(host for host in assigned if host in hosts)

    def least(host: str) -> tuple[float, str]:
        return (loads[host] + 1) / hosts[host], host

    for partition, host in enumerate(assigned):
        if host not in hosts:
            assigned[partition] = min(hosts, key=least)
            loads[assigned[partition]] += 1
    while True:
        busy, idle = max(hosts, key=lambda host: (loads[host] / hosts[host], host)), min(hosts, key=least)
        if loads[busy] / hosts[busy] <= least(idle)[0]:
            return tuple(assigned)
        assigned[max(p for p, host in enumerate(assigned) if host == busy)] = idle
        loads.update({busy: -1, idle: 1})


@dataclass(frozen=True, slots=True)
class ExecutorProcess:
    """A process of Spark that runs tasks."""

    id: str
    host: str
    cores: int


class PreferredLocations:
    """The hosts of a run's tasks, batch after batch. A local master leaves no choice."""

    def __init__(self, session: SparkSession, partitions: int) -> None:
        self._session, self._partitions = session, partitions
        self._choice = not str(session.sparkContext.master).startswith("local")
        self._warming: dict[ExecutorProcess, threading.Thread] = {}
        self._warm: set[ExecutorProcess] = set()
        self._hosts: Hosts = {}
        self._assigned: tuple[str, ...] = ()
        self._executors: set[ExecutorProcess] = set()
        self._readers: dict[int, RDD[bytes]] = {}
        self._hints: RDD[bytes] | None = None
        self._times: deque[float] = deque(maxlen=8)

    @property
    def is_here(self) -> bool:
        """True if all tasks run on this machine."""
        return not self._choice

    @property
    def tasks(self) -> int:
        """Tasks of a stage: no more than there are cores, unless each partition has a host of its own."""
        return (
            self._partitions if self._choice else min(self._partitions, self._session.sparkContext.defaultParallelism)
        )

    def refresh(self) -> None:
        """Refresh the set of executors before each batch. SQ8006 if none ever comes."""
        if not self._choice:
            return
        if not self._warm & self._discover_executors():
            self._wait_for_executors()
        hosts = cores_by_host(self._warm & self._discover_executors())
        if hosts and hosts != self._hosts:
            context = self._session.sparkContext
            self._hosts, self._assigned = hosts, assign(self._partitions, hosts, self._assigned)
            self._hints, self._readers = preferred_hosts(context, self._assigned), {}

    def record_time(self, seconds: float) -> None:
        """Record the seconds of a batch, from which follows how long the next one's tasks wait for their hosts.

        They wait twice as long, for a host that is gone is not to be missed for longer; where each partition has a
        core, not as long as Spark takes to start an executor anew.
        """
        self._times.append(seconds)
        if self._choice:
            queued = self._partitions > sum(self._hosts.values())
            wait = min(max(_LEAST_WAIT, 2 * median(self._times)), _PATIENCE if queued else _START)
            self._session.sparkContext._jsc.sc().conf().set("spark.locality.wait.node", f"{wait * 1000:.0f}ms")

    def feed_source(self, tasks: int) -> "RDD[bytes]":
        """Create the empty rows that the reading tasks start from, on ready hosts; cached until the hosts change."""
        if tasks not in self._readers:
            assigned = assign(tasks, self._hosts, ()) if self._hosts else [""] * tasks
            self._readers[tasks] = preferred_hosts(self._session.sparkContext, assigned)
        return self._readers[tasks]

    def prefer_state_hosts(self, sent: "RDD[bytes]") -> "RDD[bytes]":
        """Prefer, for each partition of an exchange, the host of its state."""
        if self._hints is None:
            return sent
        return zip_partitions(sent, self._hints, self._partitions)

    def close(self) -> None:
        """Stop warming up executors."""
        threads = [thread for thread in self._warming.values() if thread.is_alive()]
        if threads:
            self._session.sparkContext.cancelAllJobs()
        for thread in threads:
            thread.join(_PATIENCE)

    def _discover_executors(self) -> set[ExecutorProcess]:
        """List the executors, and start to warm up new ones."""
        context = self._session.sparkContext
        # NB: listing executors takes many calls, so their ids are compared first
        if set(context._jsc.sc().getExecutorIds().mkString(" ").split()) != {
            executor.id for executor in self._executors
        }:
            self._executors = executors_of(context)
        for executor in self._executors - self._warming.keys():
            self._warming[executor] = thread = threading.Thread(target=self._warm_up, args=(executor,), daemon=True)
            thread.start()
        return self._executors

    def _warm_up(self, executor: ExecutorProcess) -> None:
        try:
            _run_on_hosts(self._session.sparkContext, [f"executor_{executor.host}_{executor.id}"], _nothing)
            self._warm.add(executor)
            log_event(SPARK, DEBUG, "executor", id=executor.id, host=executor.host, cores=executor.cores)
        except Exception as error:  # NB: the executor, or this process, has ended
            why = first_line(error)
            log_event(SPARK, WARNING, "executor not used", id=executor.id, host=executor.host, error=why)

    def _wait_for_executors(self) -> None:
        """Wait for executors, until all that have come are warm."""
        if not executors_of(self._session.sparkContext):  # some clusters start executors on demand
            threading.Thread(target=_ask_for_executors, args=(self._session.sparkContext,), daemon=True).start()
        end = monotonic() + _PATIENCE
        while not (executors := self._discover_executors()) or any(
            self._warming[executor].is_alive() for executor in executors
        ):
            if not executors and monotonic() > end:
                message = f"{self._session.sparkContext.master} has provided no executor for {_PATIENCE} seconds"
                raise SquallError(
                    "SQ8006", message, hint="check that its workers run and have cores and memory to spare"
                )
            sleep(_LOOK)


def _ask_for_executors(context: SparkContext) -> None:
    """Run a stage at any host, for which a cluster that starts executors on demand starts one."""
    try:
        _run_on_hosts(context, [""], _nothing)
    except Exception as error:  # NB: whoever waits for executors says that there are none
        log_event(SPARK, WARNING, "no executor yet", error=first_line(error))


def _run_on_hosts(context: SparkContext, hosts: Sequence[str], stage: StageFunction) -> None:
    """Run a stage at each of some hosts."""
    map_stage(stage, preferred_hosts(context, hosts)).collect()


def executors_of(context: SparkContext) -> set[ExecutorProcess]:
    """List the live executors whose address is fully known: for a second Spark has the host alone.

    A local master has none.
    """
    executors = context._jsc.sc().statusStore().executorList(True).iterator()
    found = set()
    while executors.hasNext():
        executor = executors.next()
        host, _, port = executor.hostPort().rpartition(":")
        if executor.id() != "driver" and executor.isActive() and port.isdigit():
            found.add(ExecutorProcess(executor.id(), host, executor.totalCores()))
    return found


def cores_by_host(executors: set[ExecutorProcess]) -> dict[str, int]:
    """Add up the executors' cores by host."""
    hosts: Counter[str] = Counter()
    for executor in executors:
        hosts[executor.host] += executor.cores
    return dict(hosts)


def evict_local_state(session: SparkSession, location: StateLocation) -> None:
    """Evict the mapped files of a state folder on every host that can be reached."""
    if hosts := list(cores_by_host(executors_of(session.sparkContext))):
        _run_on_hosts(session.sparkContext, hosts, _EvictLocalState(location))


def _nothing(rows: Iterable[bytes]) -> Iterable[bytes]:
    return filter(None, rows)


@dataclass(frozen=True, slots=True)
class _EvictLocalState:
    location: StateLocation

    def __call__(self, rows: Iterable[bytes]) -> Iterable[bytes]:
        self.location.delete_local("partition-*")  # NB: the result is the driver's, which may be on the same host
        return _nothing(rows)
