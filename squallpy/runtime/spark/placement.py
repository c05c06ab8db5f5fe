"""Partitions to hosts: each where its state is, and Spark told so.

    assign(4, {"a": 1, "b": 1}, ())                          →  ("a", "b", "a", "b")
    assign(4, {"b": 1, "c": 1}, ("a", "b", "a", "b"))        →  ("c", "b", "c", "b")     a is gone, c has come

Spark sends a task of an exchange to any executor that is free. But a task prefers the hosts that an input of it does:
so a small row that only says where it would rather be (an anchor) is put beside what each partition is sent.
"""

import pickle
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from squallpy.runtime.spark.tasks import ROW, Note
from squallpy.runtime.state.place import Place

Hosts = Mapping[str, int]
"""Hosts by name, with the cores that Spark has there."""


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


class Placement:
    """Where the partitions of a run are, batch after batch."""

    def __init__(self, session: SparkSession, partitions: int) -> None:
        self._session, self._partitions = session, partitions
        self._hosts: Hosts = {}
        self._places: tuple[str, ...] = ()
        self._anchors: Any = None

    def look(self) -> None:
        """Take in which hosts are there now; done before each batch."""
        if str(self._session.sparkContext.master).startswith("local"):
            return
        hosts = hosts_of(self._session.sparkContext)
        if hosts == self._hosts:
            return
        self._hosts = hosts
        self._places = assign(self._partitions, hosts, self._places) if len(hosts) > 1 else ()
        self._anchors = _anchors(self._session.sparkContext, self._places) if self._places else None

    def anchored(self, sent: DataFrame) -> DataFrame:
        """What an exchange brings, each partition of it on its host."""
        if self._anchors is None:
            return sent
        jvm, context = self._session.sparkContext._jvm, self._session.sparkContext._jsc.sc()
        assert jvm is not None
        rows = jvm.PythonUtils.toSeq([sent._jdf.queryExecution().toRdd(), self._anchors])
        rdd_class = jvm.org.apache.spark.rdd.SQLPartitioningAwareUnionRDD  # zips partitions, likes hosts that any likes
        united = rdd_class(context, rows, self._partitions, jvm.scala.reflect.ClassTag.AnyRef())
        frame = self._session._jsparkSession.internalCreateDataFrame(united, sent._jdf.schema(), False)
        return DataFrame(frame, self._session)


def hosts_of(context: SparkContext) -> dict[str, int]:
    """The hosts on which executors are alive; of a local master none."""
    executors = context._jsc.sc().statusStore().executorList(True).iterator()
    hosts: Counter[str] = Counter()
    while executors.hasNext():
        executor = executors.next()
        if executor.id() != "driver" and executor.isActive():
            hosts[executor.hostPort().rpartition(":")[0]] += executor.totalCores()
    return dict(hosts)


def forget(session: SparkSession, place: Place) -> None:
    """Every host drops its mapped files of a place, as far as it is there."""
    hosts = list(hosts_of(session.sparkContext))
    if hosts:
        anchors = _anchors(session.sparkContext, hosts)
        schema = session.createDataFrame([], ROW)._jdf.schema()
        frame = DataFrame(session._jsparkSession.internalCreateDataFrame(anchors, schema, False), session)
        frame.mapInArrow(_Forget(place), ROW).collect()


@dataclass(frozen=True, slots=True)
class _Forget:
    place: Place

    def __call__(self, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from (batch.slice(0, 0) for batch in rows)
        self.place.forget_local("partition-*")  # NB: the result is the driver's, which may be on the same host


def _anchors(context: SparkContext, places: Sequence[str]) -> Any:
    """A row for each partition, an empty note, that prefers its host."""
    jvm, gateway = context._jvm, context._gateway
    assert jvm is not None and gateway is not None
    note, located = pickle.dumps(Note()), []
    for partition, host in enumerate(places):
        cells = gateway.new_array(jvm.java.lang.Object, 3)
        cells[0], cells[1], cells[2] = partition, -1 << 62, note  # NB: a number of that size becomes a Long
        row = jvm.org.apache.spark.sql.catalyst.expressions.GenericInternalRow(cells)
        located.append(jvm.scala.Tuple2(row, jvm.PythonUtils.toSeq([host])))
    return context._jsc.sc().makeRDD(jvm.PythonUtils.toSeq(located), jvm.scala.reflect.ClassTag.AnyRef())
