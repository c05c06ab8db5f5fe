"""Metrics as Prometheus reads them, with its own parser, and the health of a run."""

import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from squallpy.base.addresses import Address
from squallpy.runtime.observers.metrics_server import MetricsServer
from squallpy.runtime.observers.prometheus import BUCKETS, Prometheus
from squallpy.runtime.observers.prometheus_text import Family, Histogram, exposition
from squallpy.runtime.observers.protocol import Observer, Observers
from squallpy.runtime.observers.report import BatchReport, JoinReport
from squallpy.runtime.sources.protocol import Backlog
from squallpy.runtime.sources.source_report import SourceReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.terminal.conftest import CLICKS, STREAM, Squall

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples(text: str) -> Samples:
    """All samples by name and labels, as Prometheus's parser sees them."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation and family.type in ("gauge", "counter", "histogram")
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, f"{key} twice"
            found[key] = sample.value
    return found


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_any_text_may_be_a_label() -> None:
    family = Family("squallpy_x", "gauge", 'back\\slash, "quotes"\nand lines')
    label = 'a "b" \\ c\nd, e={}'
    family.set(1.5, view=label)
    family.set(float("inf"), view="∞")
    found = samples(exposition([family, Family("squallpy_none", "gauge", "No samples.")]))
    assert found == {("squallpy_x", (("view", label),)): 1.5, ("squallpy_x", (("view", "∞"),)): float("inf")}


def test_a_histogram_has_buckets_that_include_smaller_ones() -> None:
    histogram = Histogram("squallpy_s", "Seconds.", (0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        histogram.observe((value,), query=1)
    found = {
        (name, dict(labels).get("le")): value for (name, labels), value in samples(exposition([histogram])).items()
    }
    assert found == {
        ("squallpy_s_bucket", "0.1"): 2, ("squallpy_s_bucket", "1"): 3, ("squallpy_s_bucket", "+Inf"): 4,
        ("squallpy_s_sum", None): 7.65, ("squallpy_s_count", None): 4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":9464", ("", 9464)),
        ("localhost:0", ("localhost", 0)),
        ("10.0.0.1:80", ("10.0.0.1", 80)),
        ("[::1]:9464", ("::1", 9464)),
        *((text, None) for text in ("m.jsonl", "a/b:80", "file:///tmp/m", "a:b", "::1:80", "")),
    ],
)
def test_an_address_is_no_file(text: str, expected: tuple[str, int] | None) -> None:
    assert Address.parse(text) == (Address(*expected) if expected else None)
    if expected:
        assert str(Address.parse(text)) == text


def test_a_port_that_is_none_or_taken_is_one_line(squall: Squall) -> None:
    ended = squall("run", "q.sql", "--backend", "local", "--metrics", ":65536")
    assert (ended.status, ended.err) == (
        2,
        "SQ7003 --metrics :65536 has no such port, ports go up to 65535, 0 is any\n",
    )
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = squall("run", "q.sql", "--backend", "local", "--metrics", f"127.0.0.1:{port}")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith(f"SQ7005 --metrics cannot listen on 127.0.0.1:{port}: address already in use")
    ended = squall("run", "q.sql", "--backend", "local", "--metrics", "no.such.host.invalid:9464")
    assert ended.status == 2 and ended.err.startswith("SQ7005 --metrics cannot listen on no.such.host.invalid:9464: ")


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", ":0", "localhost:0"])
def test_a_server_answers_and_tells_its_health(address: str) -> None:
    now = 100.0
    metrics = Prometheus(patience=60.0, clock=lambda: now)
    parsed = Address.parse(address)
    assert parsed
    with MetricsServer(parsed, metrics) as server:
        status, text = get(server.url)
        assert status == 200 and ("squallpy_build_info", (("version", "0.1.0"),)) in samples(text)
        health = server.url.replace("/metrics", "/healthz")
        assert get(health) == (200, "ok\n") and get(f"{health}?x=1")[0] == 200
        assert get(server.url.replace("/metrics", "/"))[0] == 404
        now = 161.0
        assert get(health) == (503, "no batch and no look at the input for 61 s\n")
        metrics.on_query_idle({})
        assert get(health) == (200, "ok\n")
        metrics.fail("SQ6006 no room")
        assert get(health) == (503, "SQ6006 no room\n")
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(server.url, timeout=5)


def test_a_file_and_an_address_may_both_be_given(room: Path, squall: Squall) -> None:
    line = (
        "run",
        "q.sql",
        "--backend",
        "local",
        "--metrics",
        "127.0.0.1:0",
        "--metrics",
        "m.jsonl",
        "--metrics",
        "n.jsonl",
    )
    ended = squall(*line)
    assert ended.status == 0 and ended.err.startswith("metrics are at http://127.0.0.1:")
    assert (room / "m.jsonl").read_text() == (room / "n.jsonl").read_text() != ""
    ended = squall(*line, "--metrics", "./m.jsonl")
    assert ended.err == "SQ7003 --metrics and --metrics are the same file, give each its own\n"


def test_lag_and_freshness_go_by_when_rows_were_committed() -> None:
    now = 1000.0
    metrics = Prometheus(wall=lambda: now)
    metrics.on_query_progress(BatchReport(sources={"r": SourceReport(990.0, Backlog(7, 995.0)), "s": SourceReport()}))
    labels = (("source", "r"),)
    found = samples(metrics.exposition())
    assert found["squallpy_freshness_seconds", labels] == 10
    assert (found["squallpy_lag_rows", labels], found["squallpy_lag_seconds", labels]) == (7, 5)
    now = 1020.0
    assert samples(metrics.exposition())["squallpy_lag_seconds", labels] == 25, "it grows while nothing is read"
    metrics.on_query_idle({"r": SourceReport(None, Backlog(0))})
    found = samples(metrics.exposition())
    assert (found["squallpy_lag_rows", labels], found["squallpy_lag_seconds", labels]) == (0, 0)


def test_every_join_has_a_mapping_and_a_load() -> None:
    metrics, start = Prometheus(), Start({0: "hash", 1: "grid"})
    metrics.on_query_started(start)  # type: ignore[arg-type]
    received = {"0": {"0": 30, "1": 10}, "1": {"0": 5, "1": 5}}
    for epoch in (0, 2):
        join = JoinReport(mapping=[2, 4], ilf_ratio=1.5, busiest=1.2, epoch=epoch)
        metrics.on_query_progress(BatchReport(received=received, join=join))
    found = samples(metrics.exposition())
    hashed, grid = ((("kind", kind), ("stage", str(n))) for n, kind in enumerate(("hash", "grid")))
    assert found["squallpy_join_input_load_factor", hashed] == 1.5
    assert found["squallpy_join_input_load_factor", grid] == pytest.approx(1.8)
    sides = {
        (dict(labels)["kind"], dict(labels)["side"]): value
        for (name, labels), value in found.items()
        if name == "squallpy_join_mapping"
    }
    assert sides == {("hash", "rows"): 1, ("hash", "columns"): 2, ("grid", "rows"): 2, ("grid", "columns"): 4}
    assert found["squallpy_join_migrations_total", ()] == 2


class Start:
    """What a metrics' observer reads of the start of a query."""

    def __init__(self, joins: dict[int, str]) -> None:
        program = SimpleNamespace(relations=())
        self.plan = SimpleNamespace(
            joins=joins, partitions=2, grid=None, hypercube=None, groups=False, windows={}, program=program
        )


class StopWhenIdle(Observer):
    """Reads the metrics when there is nothing more to read, and stops the run."""

    def __init__(self, metrics: Prometheus) -> None:
        self.metrics, self.stop = metrics, threading.Event()
        self.found: Samples = {}

    def on_query_idle(self, sources: Any) -> None:
        self.found = samples(self.metrics.exposition())
        self.stop.set()


def test_a_run_tells_what_it_reads_keeps_and_waits_for(room: Path) -> None:
    (room / "in").mkdir()
    (room / "in/1.csv").write_text(CLICKS + "eve,1,never\n")
    stream = STREAM.replace("clicks.csv'", "in/', on_error 'skip', watch 'true'").replace(
        ";", "\n    TIMESTAMP BY day;"
    )
    join = "SELECT a.user, COUNT(*) AS n FROM clicks a JOIN clicks b ON a.user = b.user GROUP BY a.user RANGE 9 DAY;"
    (room / "q.sql").write_text(stream + join)
    metrics = Prometheus()
    observer = StopWhenIdle(metrics)
    options = RunOptions("local", batch_rows=2, changes=True, measured=True, checkpoint=str(room / "kept"))
    ScriptSession(room / "q.sql").run(options, IgnoringSink(), observer.stop, observer=Observers(metrics, observer))
    found = observer.found
    assert found["squallpy_batches_total", ()] == 2
    assert found["squallpy_rows_read_total", (("source", "clicks"),)] == 4
    assert found["squallpy_rows_left_out_total", (("reason", "skipped"),)] == 1
    assert found["squallpy_lag_rows", (("source", "clicks"),)] == 0
    assert 0 <= found["squallpy_freshness_seconds", (("source", "clicks"),)] < 600
    assert found["squallpy_watermark_timestamp_seconds", (("stream", "clicks"),)] == 1704240000
    assert found["squallpy_batch_seconds_count", ()] == 2
    assert found["squallpy_checkpoint_seconds_total", ()] > 0
    assert any(name == "squallpy_state_bytes" and value > 0 for (name, _), value in found.items())
    assert any(name == "squallpy_join_input_load_factor" for name, _ in found)
    assert len([name for name, _ in found if name == "squallpy_batch_seconds_bucket"]) == len(BUCKETS) + 1
    assert metrics.trouble == ""
