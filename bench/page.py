"""Batches while the page is looked at, by those without a page: `python -m bench.page [SCALE [BATCH_ROWS]]`.

TPC-H Q3 in a session; a browser's requests come from another process: reports, and the view each second. Wall time of
the batches, and processor time of the process, server included, round by round in turn; and that of the page's threads
alone, by all, which other work on the machine does not blur.
"""

import subprocess
import sys
from os import getloadavg
from pathlib import Path
from statistics import median
from time import perf_counter, process_time, thread_time

import squallpy
from bench.data.queries import QUERIES
from squallpy.testing.tpch import TPCH

ROUNDS = 7
CLIENT = """
import sys, threading, time, urllib.request
def read():
    with urllib.request.urlopen(sys.argv[1] + "events") as events:
        print("ready", flush=True)
        for line in events: pass
threading.Thread(target=read, daemon=True).start()
while True:
    urllib.request.urlopen(sys.argv[1] + "views/query1?format=page&limit=50").read()
    time.sleep(1)
"""


def run(folder: Path, batch_rows: int, with_page: bool) -> tuple[float, float, float, int]:
    """Run all batches but the first; returns wall and processor seconds, those of other threads, and the batches."""
    with squallpy.connect(settings={"batch_rows": batch_rows}) as session:
        session.sql(QUERIES["q3"].session.text.replace("(path 'data/", f"(path '{folder}/"))
        session.step()
        client: subprocess.Popen[bytes] | None = None
        if with_page:
            client = subprocess.Popen([sys.executable, "-c", CLIENT, session.serve_page("127.0.0.1:0")], stdout=-1)
            assert client.stdout
            client.stdout.readline()
        wall, processor, own = perf_counter(), process_time(), thread_time()
        batches = session.run_until_caught_up()
        wall, processor, own = perf_counter() - wall, process_time() - processor, thread_time() - own
        if client:
            client.kill()
            client.wait()
        return wall, processor, processor - own, batches


def main(scale: float, batch_rows: int) -> None:
    """Print the ratio of each round, and their medians."""
    folder = TPCH.generate_cached(scale)
    ratios = list[tuple[float, float, float]]()
    for number in range(-1, ROUNDS):
        alone, seen = run(folder, batch_rows, False), run(folder, batch_rows, True)
        if number >= 0:  # the one before warms up
            ratios.append((seen[0] / alone[0], seen[1] / alone[1], (seen[2] - alone[2]) / seen[1]))
            print(
                f"{alone[3]} batches in {alone[0]:.2f} s; {_words(*ratios[-1])}; load {getloadavg()[0]:.1f}", flush=True
            )
    wall, processor, threads = (median(each) for each in zip(*ratios, strict=True))
    print(f"medians: {_words(wall, processor, threads)}")


def _words(wall: float, processor: float, threads: float) -> str:
    return f"with a page {wall:.3f} x, processor {processor:.3f} x, its threads {threads:.1%}"


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 0.3, int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
