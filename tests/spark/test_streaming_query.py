"""A query on Spark is a streaming query: it is listed, reports progress, can be stopped, and its stages have names."""

import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from squallpy.base.settings import Settings
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.kept import Kept

pytestmark = pytest.mark.spark


class Listener(StreamingQueryListener):
    """What a listener is told of queries called shop."""

    def __init__(self) -> None:
        self.started, self.times, self.ended = list[str | None](), list[float](), threading.Event()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.started.append(event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        if event.progress.name == "shop":
            self.times.append(time.monotonic())

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.ended.set()


class Acting(Kept):
    """A sink that acts at a batch."""

    def __init__(self, batch: int, act: Any) -> None:
        super().__init__()
        self.at, self.act = batch, act

    def batch(self, number: int, deletes: Any, inserts: Any) -> None:
        super().batch(number, deletes, inserts)
        if number == self.at:
            self.act()


@pytest.fixture
def shop(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScriptSession:
    from squallpy.runtime.spark import executor

    monkeypatch.setattr(executor, "start", lambda *_: nullcontext(cluster))
    (tmp_path / "r.csv").write_text("".join(f"{n % 7},{n}\n" for n in range(1000)))
    (tmp_path / "shop.sql").write_text(
        "CREATE STREAM r (k INT, v INT) USING csv OPTIONS (path 'r.csv');\nSELECT k, SUM(v) AS s FROM r GROUP BY k;"
    )
    return ScriptSession(tmp_path / "shop.sql", Settings(partitions=2, local_dir=str(tmp_path / "local")))


def test_a_listener_is_told_of_progress(cluster: Any, shop: ScriptSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """… once a tick, which ends after a while, and not only with the query."""
    from squallpy.runtime.spark import micro_batch_loop

    monkeypatch.setattr(micro_batch_loop, "_TICK", 0.05)
    listener = Listener()
    cluster.session.streams.addListener(listener)
    try:
        shop.run(RunOptions(batch_rows=20), IgnoringSink())
        assert listener.ended.wait(600)
    finally:
        cluster.session.streams.removeListener(listener)
    assert listener.started == ["shop"]
    assert len(listener.times) > 3


def test_stopping_the_query_ends_the_run_after_the_batch(cluster: Any, shop: ScriptSession, tmp_path: Path) -> None:
    """The batch in work is committed, and the next run goes on behind it: with the answer over all."""
    options = RunOptions(batch_rows=20, changes=True, checkpoint=str(tmp_path / "kept"))

    def stop() -> None:
        (query,) = (query for query in cluster.session.streams.active if query.name == "shop")
        threading.Thread(target=query.stop).start()
        while query.isActive:
            time.sleep(0.01)

    sink, stopped = Acting(3, stop), threading.Event()
    shop.run(options, sink, stopped)
    assert stopped.is_set() and not cluster.session.streams.active
    assert 4 <= len(sink.changes) <= 6
    before = len(sink.changes)
    sink.at = -1
    shop.run(options, sink)
    assert len(sink.changes) == 50 and min(sink.changes) == 0 and before < 50
    assert sink.rows == [str({"k": k, "s": sum(n for n in range(1000) if n % 7 == k)}) for k in range(7)]


def test_stages_are_named_after_what_they_do(cluster: Any, shop: ScriptSession) -> None:
    tracker, names = cluster.session.sparkContext.statusTracker(), set[str]()

    class Looking(IgnoringSink):
        def batch(self, number: int, deletes: Any, inserts: Any) -> None:
            for stage in range(10_000):
                if info := tracker.getStageInfo(stage):
                    names.add(info.name)

    shop.run(RunOptions(batch_rows=500), Looking())
    assert any(name.startswith("read r") for name in names), names
