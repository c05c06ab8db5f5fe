"""Seconds from a key press at the prompt to its echo: `python -m bench.key_presses [ROWS]`.

A view of sums by 100,000 keys is kept fresh over a watched folder that has so many rows of csv, in batches of 10,000 at
full speed, while a line is typed; then it is typed with nothing to do.
"""

import os
import pty
import select
import sys
import time
from os import getloadavg
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv

CTRL_C = "\x03"
PAUSE = 0.15
LINE = "SELECT COUNT(*) AS rows_of_it FROM sums WHERE total > 100 "
SCRIPT = (
    "CREATE STREAM r (k INT, v INT) USING csv OPTIONS (path 'in/', watch 'true', header 'true');",
    "CREATE MATERIALIZED VIEW sums AS SELECT k, SUM(v) AS total FROM r GROUP BY k;",
)


class Prompt:
    """A prompt in a terminal of its own."""

    def __init__(self, room: Path) -> None:
        self._child, self._terminal = pty.fork()
        if not self._child:
            os.chdir(room)
            os.environ |= {"SQUALL_HISTORY": "", "TERM": "xterm"}
            os.execv(sys.executable, [sys.executable, "-m", "squallpy.terminal", "--set", "batch_rows=10000"])

    def read(self, seconds: float) -> bytes:
        """Return what is shown within so many seconds; nothing if nothing is."""
        ready, _, _ = select.select([self._terminal], [], [], seconds)
        return os.read(self._terminal, 1 << 16) if ready else b""

    def wait(self, text: str, seconds: float = 60.0) -> None:
        """Wait for a text."""
        seen, until = b"", time.monotonic() + seconds
        while text.encode() not in seen:
            assert time.monotonic() < until, f"{text} is not shown, but {seen[-200:]!r}"
            seen += self.read(0.1)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def echoes(self, line: str) -> list[float]:
        """Type a line, a key at a time, and return how long each took to show."""
        found = list[float]()
        for key in line:
            while self.read(PAUSE):
                pass
            start = time.perf_counter()
            self.type(key)
            while not self.read(1.0):
                pass
            found.append(time.perf_counter() - start)
        return found

    @property
    def processor(self) -> float:
        """Seconds of processor time so far."""
        words = Path(f"/proc/{self._child}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        """End it at once."""
        os.kill(self._child, 9)
        os.waitpid(self._child, 0)


def show(what: str, seconds: list[float]) -> None:
    """Print percentiles in milliseconds."""
    high = [1e3 * float(np.percentile(seconds, part)) for part in (50, 95, 100)]
    print(f"{what:30} median {high[0]:.1f} ms, 95th percentile {high[1]:.1f}, longest {high[2]:.1f}", flush=True)


def main(count: int) -> None:
    random = np.random.default_rng(1)
    with TemporaryDirectory() as folder:
        room = Path(folder)
        (room / "in").mkdir()
        table = pa.table({"k": random.integers(0, 100_000, count), "v": random.integers(0, 100, count)})
        pyarrow.csv.write_csv(table, room / "in" / "a.csv")
        prompt = Prompt(room)
        prompt.wait("squall> ")
        prompt.type(SCRIPT[0] + "\r")
        prompt.wait("CREATE STREAM\r\n")
        prompt.type(SCRIPT[1] + "\r")
        time.sleep(2.0)
        prompt.type(CTRL_C)  # NB: it goes on in the background
        prompt.wait("it goes on in the background")
        print(f"load {getloadavg()[0]:.1f}")
        start, processor = time.perf_counter(), prompt.processor
        seconds = prompt.echoes(LINE)
        busy = (prompt.processor - processor) / (time.perf_counter() - start)
        show(f"while batches take {busy:.0%} of a core", seconds)
        prompt.end()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60_000_000)
