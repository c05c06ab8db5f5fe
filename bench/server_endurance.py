"""An hour of 10,000 rows a second from PostgreSQL through a query into a topic of Kafka: what a run takes, by tenths.

python -m bench.server_endurance --minutes 10        the same for ten minutes

Both servers are started in a temporary folder. A batch begins each second, so that batches are alike. Of processor time
that of the run counts, with its client's threads: the thread that inserts rows is taken off.
"""

import argparse
import json
import os
import threading
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from time import monotonic, process_time, sleep, thread_time

import psycopg

from bench.sources import Pace, run, wait_for
from squallpy.runtime.observers.report import BatchReport
from tests.connectors.kafka_topics import messages
from tests.connectors.servers import KafkaServer, PostgresServer

QUERY = "SELECT g, COUNT(*) AS n, SUM(v) AS v FROM h GROUP BY g"
SCRIPT = """CREATE STREAM h USING postgres OPTIONS (url '{url}');
CREATE SINK s USING kafka OPTIONS (kafka.bootstrap.servers '{address}', mode 'upsert') AS {query};"""
HELD = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::bigint FROM pg_replication_slots"


class Batches(Pace):
    """An observer that also keeps how long each batch took."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = list[float]()

    def on_query_progress(self, report: BatchReport) -> None:
        super().on_query_progress(report)
        self.seconds.append(report.seconds)


def memory() -> int:
    """Return the megabytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20


def work() -> float:
    """Return the processor time of all threads but this one."""
    return process_time() - thread_time()


def endure(source: PostgresServer, kafka: KafkaServer, folder: Path, minutes: float, rate: int) -> None:
    """Insert rows at a rate, and print for each tenth of the time what a run takes that keeps a topic fresh."""
    source.execute(
        "CREATE TABLE h (g int, v int)", "ALTER TABLE h REPLICA IDENTITY FULL", "CREATE PUBLICATION squall FOR TABLE h"
    )
    text = SCRIPT.format(url=source.url, address=kafka.address, query=QUERY)
    pace, stop = Batches(), threading.Event()
    given = (text, "local", folder / "kept", "1 second", stop, pace, 2 * rate)
    running = threading.Thread(target=run, args=given, daemon=True)
    running.start()
    wait_for(lambda: bool(pace.seconds))
    with psycopg.connect(source.url, autocommit=True) as connection:
        begin, sent, most, tenth, worked = monotonic(), 0, 0, 1, work()
        while tenth <= 10:
            now = monotonic() - begin
            if (due := int(now * rate)) > sent:
                connection.execute(f"INSERT INTO h SELECT i % 1000, i % 7 FROM generate_series({sent}, {due - 1}) i")
                sent = due
            most = max([most, *(int(row[0]) for row in connection.execute(HELD).fetchall())])
            if now >= tenth * minutes * 6:
                batches, cuts, each = len(pace.seconds), quantiles(pace.seconds, n=100), work() - worked
                pace.seconds, worked = [], worked + each
                says = f"{tenth:3} tenths, {sent:,} rows, {sent - pace.rows:,} unread, {memory():,} MB,"
                says += f" {batches:,} batches of {each / batches * 1e3:.1f} ms of processor time,"
                says += f" p50 {cuts[49] * 1e3:.0f} ms, p95 {cuts[94] * 1e3:.0f} ms, log held at most {most >> 20} MB,"
                print(f"{says} load {os.getloadavg()[0]:.0f}", flush=True)
                tenth, most = tenth + 1, 0
            sleep(0.01)
    wait_for(lambda: pace.rows == sent)
    stop.set()
    running.join()
    last = {message.key(): message.value() or b"" for message in messages(kafka, "s")}
    assert sorted(tuple(json.loads(value).values()) for value in last.values()) == sorted(source.execute(QUERY))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--rate", type=int, default=10_000)
    given = parser.parse_args()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # NB: the server may have a user of its own
        for name in ("postgres", "kafka"):
            (Path(folder) / name).mkdir()
        source, kafka = PostgresServer(Path(folder) / "postgres"), KafkaServer(Path(folder) / "kafka")
        try:
            endure(source, kafka, Path(folder), given.minutes, given.rate)
        finally:
            source.stop()
            kafka.kill()


if __name__ == "__main__":
    main()
