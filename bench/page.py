"""Cost of the page while it is looked at: `python -m bench.page [SCALE [BATCH_ROWS]]`.

TPC-H Q3 in a session; a browser's requests come from another process: reports, and the view each second. Of each round:
wall time of all batches but the first, by that of a round without a page; and the processor time of the page, that of
its threads and of recording reports, by that of the batches, which other work on the machine does not blur.
"""

import subprocess
import sys
import threading
from os import getloadavg
from pathlib import Path
from statistics import median
from time import clock_gettime, perf_counter, process_time, pthread_getcpuclockid, thread_time

import squallpy
from bench.data.queries import QUERIES
from squallpy.runtime.observers.report import BatchReport
from squallpy.testing.tpch import TPCH
from squallpy.web.recorder import Recorder

ROUNDS = 7
CLIENT = """
import http.client, sys, threading, time, urllib.parse
host = urllib.parse.urlsplit(sys.argv[1]).netloc
def ask(connection, path):
    connection.request("GET", path)
    return connection.getresponse()
def read():
    for line in ask(http.client.HTTPConnection(host), "/events"): pass
threading.Thread(target=read, daemon=True).start()
views = http.client.HTTPConnection(host)
while True:
    ask(views, "/views/query1?format=page&limit=50").read()
    print("seen", flush=True)
    time.sleep(1)
"""


class Recording:
    """The processor time in which reports are recorded."""

    def __init__(self) -> None:
        self.seconds, record = 0.0, Recorder.on_query_progress

        def on_query_progress(recorder: Recorder, report: BatchReport) -> None:
            begin = thread_time()
            record(recorder, report)
            self.seconds += thread_time() - begin

        setattr(Recorder, "on_query_progress", on_query_progress)  # noqa: B010


def page_threads() -> float:
    """Return the processor time of the threads of the page."""
    threads = [each.ident for each in threading.enumerate() if each.name.startswith(("squallpy page", "AnyIO"))]
    return sum(clock_gettime(pthread_getcpuclockid(ident)) for ident in threads if ident)


def run(folder: Path, batch_rows: int, with_page: bool, recording: Recording) -> tuple[float, float, int]:
    """Run all batches but the first; returns seconds, the part of the page in the processor time, and the batches."""
    with squallpy.connect(settings={"batch_rows": batch_rows}) as session:
        session.sql(QUERIES["q3"].session.text.replace("(path 'data/", f"(path '{folder}/"))
        session.step()
        client: subprocess.Popen[bytes] | None = None
        if with_page:
            client = subprocess.Popen([sys.executable, "-c", CLIENT, session.serve_page("127.0.0.1:0")], stdout=-1)
            assert client.stdout
            client.stdout.readline()
        wall, processor, page, recording.seconds = perf_counter(), process_time(), page_threads(), 0.0
        batches = session.run_until_caught_up()
        wall, page = perf_counter() - wall, page_threads() - page + recording.seconds
        processor = process_time() - processor
        if client:
            client.kill()
            client.wait()
        return wall, page / (processor - page), batches


def main(scale: float, batch_rows: int) -> None:
    """Print each round, and the medians."""
    folder, recording = TPCH.generate_cached(scale), Recording()
    ratios = list[tuple[float, float]]()
    for number in range(-1, ROUNDS):
        alone, _, batches = run(folder, batch_rows, False, recording)
        seen, part, _ = run(folder, batch_rows, True, recording)
        if number >= 0:  # the one before warms up
            ratios.append((seen / alone, part))
            costs = f"with a page {seen / alone:.3f} x, its processor time is {part:.2%}"
            print(f"{batches} batches in {alone:.2f} s; {costs}; load {getloadavg()[0]:.1f}", flush=True)
    print(f"medians: {median(wall for wall, _ in ratios):.3f} x, {median(part for _, part in ratios):.2%}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.5, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
