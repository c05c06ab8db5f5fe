"""Partitions to hosts: each where its state is, and Spark told so.

    assign(4, {"a": 1, "b": 1}, ())                          →  ("a", "b", "a", "b")
    assign(4, {"b": 1, "c": 1}, ("a", "b", "a", "b"))        →  ("c", "b", "c", "b")     a is gone, c has come

Spark sends a task of an exchange to any executor that is free. But a task prefers the hosts that an input of it does:
so a small row that only says where it would rather be (an anchor) is put beside what each partition is sent.

An executor that has come has first to load Python and the kernels, for seconds. No batch waits for that: it gets a task
of its own to warm up with, and until it is done nothing else.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from time import monotonic, sleep

from pyspark import RDD, SparkContext
from pyspark.sql import SparkSession

from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint.folders import Place
from squallpy.runtime.spark.planned_job import Stage, anchors, staged, together

Hosts = Mapping[str, int]
"""Hosts by name, with the cores that Spark has there."""

_PATIENCE = 60  # seconds for a master to give us an executor
_LOOK = 0.05
_LEAST_WAIT, _START = 0.3, 1.0  # NB: each stage waits for itself


def assign(partitions: int, hosts: Hosts, before: Sequence[str]) -> tuple[str, ...]:
    """A host for each partition: where it was, unless that is gone, or busier than another would be with it."""
    assert hosts, "nowhere to go"
    places = list(before) or [""] * partitions
    loads = Counter(dict.fromkeys(hosts, 0)) | Counter(place for place in places if place in hosts)

    def least(host: str) -> tuple[float, str]:
        return (loads[host] + 1) / hosts[host], host

    for partition, place in enumerate(places):
        if place not in hosts:
            places[partition] = min(hosts, key=least)
            loads[places[partition]] += 1
    while True:
        busy, idle = max(hosts, key=lambda host: (loads[host] / hosts[host], host)), min(hosts, key=least)
        if loads[busy] / hosts[busy] <= least(idle)[0]:
            return tuple(places)
        places[max(p for p, place in enumerate(places) if place == busy)] = idle
        loads.update({busy: -1, idle: 1})


@dataclass(frozen=True, slots=True)
class Executor:
    """A process of Spark's that runs tasks."""

    id: str
    host: str
    cores: int


class Placement:
    """Where the tasks of a run are, batch after batch. With a local master there is nothing to choose."""

    def __init__(self, session: SparkSession, partitions: int) -> None:
        self._session, self._partitions = session, partitions
        self._choice = not str(session.sparkContext.master).startswith("local")
        self._warming: dict[Executor, threading.Thread] = {}
        self._warm: set[Executor] = set()
        self._hosts: Hosts = {}
        self._places: tuple[str, ...] = ()
        self._there: set[Executor] = set()
        self._readers: dict[int, RDD[bytes]] = {}
        self._anchors: RDD[bytes] | None = None
        self._took: deque[float] = deque(maxlen=8)

    @property
    def is_here(self) -> bool:
        """Is all on this machine?"""
        return not self._choice

    @property
    def tasks(self) -> int:
        """How many a stage has: no more than there are cores, unless each partition has a host to be at."""
        return (
            self._partitions if self._choice else min(self._partitions, self._session.sparkContext.defaultParallelism)
        )

    def look(self) -> None:
        """Take in which executors are there now; done before each batch. SQ8006 if none ever comes."""
        if not self._choice:
            return
        if not self._warm & self._welcome():
            self._begin()
        hosts = hosts_of(self._warm & self._welcome())
        if hosts and hosts != self._hosts:
            context = self._session.sparkContext
            self._hosts, self._places = hosts, assign(self._partitions, hosts, self._places)
            self._anchors, self._readers = anchors(context, self._places), {}

    def took(self, seconds: float) -> None:
        """A batch took so long. A task of the next waits twice that for its host, for one that is gone is not to be
        missed for longer; where each partition has a core, not for as long as Spark takes to start an executor anew."""
        self._took.append(seconds)
        if self._choice:
            queued = self._partitions > sum(self._hosts.values())
            wait = min(max(_LEAST_WAIT, 2 * median(self._took)), _PATIENCE if queued else _START)
            self._session.sparkContext._jsc.sc().conf().set("spark.locality.wait.node", f"{wait * 1000:.0f}ms")

    def reading(self, tasks: int) -> "RDD[bytes]":
        """What so many tasks that read start from, on hosts that are ready: a row that says nothing. It is the same
        until the hosts are others."""
        if tasks not in self._readers:
            places = assign(tasks, self._hosts, ()) if self._hosts else [""] * tasks
            self._readers[tasks] = anchors(self._session.sparkContext, places)
        return self._readers[tasks]

    def anchored(self, sent: "RDD[bytes]") -> "RDD[bytes]":
        """What an exchange brings, each partition of it on its host."""
        if self._anchors is None:
            return sent
        return together(sent, self._anchors, self._partitions)

    def close(self) -> None:
        """Nobody warms up any more."""
        threads = [thread for thread in self._warming.values() if thread.is_alive()]
        if threads:
            self._session.sparkContext.cancelAllJobs()
        for thread in threads:
            thread.join(_PATIENCE)

    def _welcome(self) -> set[Executor]:
        """The executors; those that have come begin to warm up."""
        context = self._session.sparkContext
        # NB: who they are takes many questions, so it is asked when others are there
        if set(context._jsc.sc().getExecutorIds().mkString(" ").split()) != {executor.id for executor in self._there}:
            self._there = executors_of(context)
        for executor in self._there - self._warming.keys():
            self._warming[executor] = thread = threading.Thread(target=self._heat, args=(executor,), daemon=True)
            thread.start()
        return self._there

    def _heat(self, executor: Executor) -> None:
        with suppress(Exception):  # it is gone again, or we are
            _everywhere(self._session.sparkContext, [f"executor_{executor.host}_{executor.id}"], _nothing)
            self._warm.add(executor)

    def _begin(self) -> None:
        """Wait for executors, until all that are there are warm."""
        if not executors_of(self._session.sparkContext):  # some clusters give what is asked for
            asked = (self._session.sparkContext, [""], _nothing)
            threading.Thread(target=_quietly, args=(_everywhere, *asked), daemon=True).start()
        end = monotonic() + _PATIENCE
        while not (there := self._welcome()) or any(self._warming[executor].is_alive() for executor in there):
            if not there and monotonic() > end:
                told = f"{self._session.sparkContext.master} has given us no executor for {_PATIENCE} seconds"
                raise SquallError(
                    "SQ8006", told, hint="look whether its workers run and have cores and memory to spare"
                )
            sleep(_LOOK)


def _quietly(ask: Callable[..., object], *arguments: object) -> None:
    with suppress(Exception):
        ask(*arguments)


def _everywhere(context: SparkContext, hosts: Sequence[str], stage: Stage) -> None:
    """Have something done at each of some hosts."""
    staged(stage, anchors(context, hosts)).collect()


def executors_of(context: SparkContext) -> set[Executor]:
    """The executors that are alive, and whose address is known in full: for a second Spark has the host alone. Of a
    local master none."""
    executors = context._jsc.sc().statusStore().executorList(True).iterator()
    found = set()
    while executors.hasNext():
        executor = executors.next()
        host, _, port = executor.hostPort().rpartition(":")
        if executor.id() != "driver" and executor.isActive() and port.isdigit():
            found.add(Executor(executor.id(), host, executor.totalCores()))
    return found


def hosts_of(executors: set[Executor]) -> dict[str, int]:
    """Their hosts."""
    hosts: Counter[str] = Counter()
    for executor in executors:
        hosts[executor.host] += executor.cores
    return dict(hosts)


def forget(session: SparkSession, place: Place) -> None:
    """Every host drops its mapped files of a place, as far as it is there."""
    if hosts := list(hosts_of(executors_of(session.sparkContext))):
        _everywhere(session.sparkContext, hosts, _Forget(place))


def _nothing(rows: Iterable[bytes]) -> Iterable[bytes]:
    return filter(None, rows)


@dataclass(frozen=True, slots=True)
class _Forget:
    place: Place

    def __call__(self, rows: Iterable[bytes]) -> Iterable[bytes]:
        self.place.forget_local("partition-*")  # NB: the result is the driver's, which may be on the same host
        return _nothing(rows)
