"""Sources and sinks of servers: changes of pgbench read into a query, and how soon a change is in a sink.

python -m bench.sources                  200,000 changes; 20 seconds at 1,000 rows/s
python -m bench.sources --changes 1000000 --seconds 60

PostgreSQL is started in a temporary folder. A run with a checkpoint has resumed, and its server's sender is stopped
while pgbench makes the changes: what is measured is receiving, reading and maintaining them when it goes on.
"""

import argparse
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import monotonic, perf_counter, sleep

import psycopg

from squallpy.base.batch_trigger import BatchTrigger
from squallpy.runtime.observers.protocol import Observer
from squallpy.runtime.observers.report import BatchReport
from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink
from tests.connectors.servers import PostgresServer, find_postgres

BRANCHES = 10
FIRST = 1000  # rows that are in the sink before changes are timed
NOW = "clock_timestamp() AT TIME ZONE 'UTC'"
STREAMS = "CREATE STREAM pgbench_accounts (aid INT PRIMARY KEY, bid INT, abalance INT) {of};" + (
    "CREATE STREAM pgbench_history (tid INT, bid INT, delta INT) {of};"
)
QUERIES = {
    "balances by branch": "SELECT bid, COUNT(*) AS n, SUM(abalance) AS s FROM pgbench_accounts GROUP BY bid;",
    "accounts join history": "SELECT a.bid, SUM(h.delta) AS s, COUNT(*) AS n FROM pgbench_accounts a"
    " JOIN pgbench_history h ON h.bid = a.bid WHERE a.aid % 1000 = 0 GROUP BY a.bid;",
}


class Pace(Observer):
    """An observer that counts the rows that batches have read."""

    def __init__(self) -> None:
        self.rows = 0

    def on_query_progress(self, report: BatchReport) -> None:
        self.rows += report.tuples


def run(
    text: str,
    backend: str,
    kept: Path,
    trigger: str,
    stop: threading.Event | None = None,
    observer: Observer | None = None,
    batch_rows: int | None = None,
) -> None:
    options = RunOptions(
        backend=backend,
        trigger=BatchTrigger.parse(trigger),
        changes=True,
        final=False,
        checkpoint=str(kept),
        batch_rows=batch_rows,
    )
    ScriptSession(Path("bench.sql"), text=text).run(options, IgnoringSink(), stop, observer=observer)


def pgbench(server: PostgresServer, *words: str) -> None:
    """Run pgbench."""
    command = [str(find_postgres() / "pgbench"), "-h", "127.0.0.1", "-p", str(server.port), "-U", "postgres", *words]
    subprocess.run([*command, "postgres"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def throughput(server: PostgresServer, folder: Path, changes: int, backend: str, name: str) -> float:
    """Measure the changes a second that a query is kept fresh by."""
    server.clear()
    pgbench(server, "-i", "-s", str(BRANCHES))
    server.execute("ALTER TABLE pgbench_history REPLICA IDENTITY FULL", "CREATE PUBLICATION squall FOR ALL TABLES")
    text = STREAMS.format(of=f"USING postgres OPTIONS (url '{server.url}')") + QUERIES[name]
    kept = folder / f"{backend}-{name}"
    run(text, backend, kept, "available-now")
    pgbench(server, "-n", "-c", "1", "-t", "10")
    pace, stop, streams = Pace(), threading.Event(), text.count("FROM pgbench") + text.count("JOIN pgbench")
    running = threading.Thread(target=run, args=(text, backend, kept, "as-it-comes", stop, pace))
    running.start()
    wait_for(lambda: pace.rows == 10 * streams)
    (sender,) = (pid for (pid,) in server.execute("SELECT pid FROM pg_stat_replication"))
    os.kill(sender, signal.SIGSTOP)
    pgbench(server, "-n", "-c", "4", "-t", str(changes // 16))  # NB: four changes each
    os.kill(sender, signal.SIGCONT)
    begin = perf_counter()
    wait_for(lambda: pace.rows == (10 + changes // 16 * 4) * streams)
    seconds = perf_counter() - begin
    stop.set()
    running.join()
    return changes / seconds


def latency(server: PostgresServer, folder: Path, seconds: int, backend: str) -> list[float]:
    """Measure the seconds from a change to its row in a sink, at 1,000 rows a second."""
    server.clear()
    server.execute(
        "CREATE TABLE h (id bigint PRIMARY KEY, sent timestamp)",
        f"CREATE TABLE s (id bigint PRIMARY KEY, sent timestamp, seen timestamp DEFAULT ({NOW}))",
        "CREATE PUBLICATION squall FOR TABLE h",
    )
    of = f"USING postgres OPTIONS (url '{server.url}'"
    text = f"CREATE STREAM h {of}); CREATE SINK s {of}, mode 'upsert', key 'id') AS SELECT id, sent FROM h;"
    stop = threading.Event()
    running = threading.Thread(target=run, args=(text, backend, folder / f"{backend}-latency", "as-it-comes", stop))
    running.start()
    with psycopg.connect(server.url, autocommit=True) as connection:
        wait_for(lambda: bool(server.execute("SELECT 1 FROM squall_commits")) if has_commits(server) else False)
        connection.execute(f"INSERT INTO h SELECT g, {NOW} FROM generate_series(-{FIRST}, -1) g")
        wait_for(lambda: server.execute("SELECT COUNT(*) FROM s") == [(FIRST,)])  # NB: Spark takes seconds to begin
        begin, sent = monotonic(), 0
        while (now := monotonic() - begin) < seconds:
            due = int(now * 1000)
            if due > sent:
                connection.execute(f"INSERT INTO h SELECT g, {NOW} FROM generate_series({sent}, {due - 1}) g")
                sent = due
            sleep(0.01)
        wait_for(lambda: server.execute("SELECT COUNT(*) FROM s") == [(sent + FIRST,)])
    stop.set()
    running.join()
    return [float(row[0]) for row in server.execute("SELECT EXTRACT(epoch FROM seen - sent) FROM s WHERE id >= 0")]


def has_commits(server: PostgresServer) -> bool:
    return bool(server.execute("SELECT 1 FROM pg_tables WHERE tablename = 'squall_commits'"))


def wait_for(is_there: Callable[[], bool]) -> None:
    until = monotonic() + 300
    while not is_there():
        assert monotonic() < until
        sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--changes", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--backends", nargs="*", default=["local", "spark"])
    given = parser.parse_args()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # NB: the server may have a user of its own
        (place := Path(folder) / "server").mkdir()
        server = PostgresServer(place)
        server.execute("ALTER SYSTEM SET wal_sender_timeout = 0", "SELECT pg_reload_conf()")
        for backend in given.backends:
            for name in QUERIES:
                found = throughput(server, Path(folder), given.changes, backend, name)
                print(f"{backend:6} {name:24} {found:10,.0f} changes/s", flush=True)
            times = quantiles(latency(server, Path(folder), given.seconds, backend), n=100)
            print(f"{backend:6} a change is in a sink    p50 {times[49]:.3f} s, p95 {times[94]:.3f} s", flush=True)
        server.stop()


if __name__ == "__main__":
    main()
