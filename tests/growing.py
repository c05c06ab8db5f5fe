"""Sources that grow while runs over them are killed: what each committed batch answers is what DuckDB does.

A world has a folder into which files fall, a file that grows, a data source and a generator over lines, an address to
which rows are POSTed, and on Spark a stream of Spark's; its query reads all of them. After each kill the sources are
known as far as the last committed batch has read them, by the log of offsets; the changes up to that batch have to add
up to DuckDB's answer over that. What was POSTed and answered for is in the spool, and each request whole or not at all.
"""

import csv
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections import Counter
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pyarrow as pa

LINES = "tests.sources.lines_source"
SCRIPT = f"""
CREATE STREAM a (key INT, value VARCHAR) USING csv OPTIONS (path 'a/', watch 'true');
CREATE STREAM b (key INT, value VARCHAR) USING csv OPTIONS (path 'b.csv', watch 'true');
CREATE STREAM c (key INT, value VARCHAR) USING python OPTIONS (class '{LINES}.LimitedLines', file 'FOLDER/c.csv');
CREATE STREAM d (key INT, value VARCHAR) USING python OPTIONS (generator '{LINES}.generated', file 'FOLDER/d.csv');
CREATE STREAM e (key INT, value VARCHAR) USING python OPTIONS (class '{LINES}.SimpleLines', file 'FOLDER/e.csv');
CREATE STREAM g (key INT, value VARCHAR) USING http OPTIONS (port 'PORT', format 'csv');
SPARK
SELECT key, COUNT(*) AS n, MAX(value) AS m FROM (ALL) GROUP BY key;
"""
SPARK = """CREATE STREAM f (value BIGINT) USING spark OPTIONS (
    format 'rate-micro-batch', rowsPerBatch '5', numPartitions '1');"""
F_ROWS = "SELECT CAST(value % 5 AS INT) AS key, CAST(value AS VARCHAR) AS value FROM f"
QUERY = "SELECT key, COUNT(*) AS n, MAX(value) AS m FROM r GROUP BY key"
ROOT = Path(__file__).parents[1]
Row = tuple[int, str]


class World:
    """Sources, a run over them, and what it has written."""

    def __init__(self, folder: Path, backend: str, seed: int) -> None:
        self.folder, self.backend, self.draw, self.number = folder, backend, random.Random(seed), 0
        (folder / "a").mkdir()
        for name in "bcde":
            (folder / f"{name}.csv").touch()
        streams = "abcdeg" + ("f" if backend == "spark" else "")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.pushed, self.pending = list[str](), list[str]()  # lines that were answered for, and that were not
        each = (f"SELECT key, value FROM {name}" if name != "f" else F_ROWS for name in streams)
        text = SCRIPT.replace("SPARK", SPARK if "f" in streams else "").replace("ALL", " UNION ALL ".join(each))
        (folder / "q.sql").write_text(text.replace("FOLDER", str(folder)).replace("PORT", str(self.port)))
        self.run: subprocess.Popen[str] | None = None

    def start(self, rows: int) -> None:
        """Start the run where it was, with batches of so many rows, its triggers compiled or not, and on Spark perhaps
        other partitions."""
        out = ["--mode", "changes", "--out", "out", "--format", "csv"]
        more = ["--set", f"partitions={self.draw.choice([2, 3])}", "--master", "local[2]"]
        more += ["--set", f"sinks.part_rows={self.draw.choice([1, 10_000])}"]
        command = [sys.executable, "-m", "squallpy.terminal", "run", "q.sql", "--checkpoint", "kept", *out]
        command += [
            "--set",
            f"local_dir={self.folder}/mapped",
            "--set",
            f"compile={self.draw.choice(['off', 'wait', 'background'])}",
            "--backend",
            self.backend,
            "--batch-rows",
            str(rows),
            *(more if self.backend == "spark" else []),
        ]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
        self.run = subprocess.Popen(
            command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def grow(self, name: str = "") -> None:
        """Let rows come to a source, a given one or any, at times half a line."""
        name, rows = name or self.draw.choice("aabcdeg"), self.draw.randrange(1, 9)
        lines = [f"{self.draw.randrange(5)},{self.draw.randrange(1000)}\n" for _ in range(rows)]
        self.number += 1
        if name == "g":
            self.push(lines)
            return
        if name == "a":
            draft = self.folder / f"draft-{self.number}"
            draft.write_text("".join(lines))
            draft.rename(self.folder / name / f"{self.number}.csv")
            return
        with (self.folder / f"{name}.csv").open("a") as file:
            for line in lines:
                cut = self.draw.randrange(len(line))
                file.write(line[:cut])
                file.flush()
                file.write(line[cut:])

    def push(self, lines: list[str]) -> None:
        """POST lines, if anybody listens."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        try:
            connection.request("POST", "/g", "".join(lines), {"Content-Type": "text/csv"})
            answer = connection.getresponse()
            answer.read()
            self.pushed += lines if answer.status == 200 else []
        except ConnectionRefusedError:
            return
        except (OSError, http.client.HTTPException):
            self.pending = lines
        finally:
            connection.close()

    def settle(self) -> None:
        """Find out which lines are in the spool: all that were answered for, and the others whole or not at all."""
        prefix, spooled = f"{zlib.crc32(b'g'):08x}-", 0
        for path in (self.folder / "kept" / "spool").glob(f"{prefix}*"):
            with pa.ipc.open_file(pa.BufferReader(path.read_bytes()[:-4])) as reader:
                spooled = max(spooled, int(path.name.removeprefix(prefix)) + len(reader.read_all()))
        assert spooled in (len(self.pushed), len(self.pushed) + len(self.pending)), "each is there once"
        self.pushed, self.pending = (self.pushed + self.pending)[:spooled], []

    def live(self, seconds: float) -> None:
        """Let rows come for a while."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.grow()
            # NB: some sources bring three rows a batch, of which there are fewer in a second on Spark
            time.sleep(self.draw.uniform(0, 1.0 if self.backend == "spark" else 0.1))

    def live_until_a_batch(self, patience: float = 120) -> None:
        """Let rows come until the run has committed something: on a busy machine it takes long to begin."""
        until, before = time.monotonic() + patience, self._record("batch", "0")
        while time.monotonic() < until and self._record("batch", "0") == before:
            assert self.run and self.run.poll() is None, "the run has ended"
            self.live(0.2)

    def kill(self) -> str:
        """Kill the driver with all its processes, or on Spark the JVM or a Python worker; say which."""
        assert self.run
        assert self.run.poll() is None, f"the run has ended: {self.run.communicate()[1]}"
        victim = self.draw.choice(["all", "java", "worker"]) if self.backend == "spark" else "all"
        if victim != "all":
            pattern = "java" if victim == "java" else "worker_daemon"
            pids = [pid for pid in descendants(self.run.pid) if pattern in command_of(pid)]
            for pid in pids[-1:]:
                os.kill(pid, signal.SIGKILL)
            time.sleep(self.draw.uniform(0, 1))
        os.killpg(self.run.pid, signal.SIGKILL)
        self.run.communicate()
        self.run = None
        self.settle()
        return victim

    def end(self, patience: float = 180) -> None:
        """Let the run read all that has come, as long as it goes on, and stop it."""
        assert self.run
        self.grow("b")  # so that it has a batch to do: before that it may not have begun to listen to signals
        until, found = time.monotonic() + patience, dict[str, int]()
        wanted = {name: len(self.rows(name)) for name in "abcdeg"}
        while found != wanted:
            assert self.run.poll() is None, f"the run has ended: {self.run.communicate()[1]}"
            assert time.monotonic() < until, f"{found} of {wanted}"
            time.sleep(0.3)
            before, found = found, {name: self.reached(1).get(name, 0) for name in wanted}
            if found != before:  # NB: some sources bring three rows a batch
                until = time.monotonic() + patience
        self.run.terminate()
        _, said = self.run.communicate(timeout=600)
        assert self.run.returncode == 0, said
        self.check()

    def check(self) -> int:
        """Compare the changes of committed batches with DuckDB over what these have read; return their number."""
        committed = int(self._record("batch", "0"))
        if not committed:
            return 0
        log = json.loads(self._record("offsets", "{}"))
        assert log["batch"] in (committed - 1, committed)
        read = self.reached(1 if log["batch"] < committed else 0)
        assert self.answer(committed) == self.wanted(read), f"of {committed} batches, up to {read}"
        return committed

    def reached(self, end: int) -> dict[str, int]:
        """Count the rows of each source before the last batch that was decided on, or up to its end."""
        spans = json.loads(self._record("offsets", '{"spans": {}}'))["spans"]
        return {name: next(iter(span[end].values())) for name, span in spans.items()}

    def answer(self, batches: int) -> list[Any]:
        """Add up the changes of the first batches."""
        rows = Counter[tuple[str, ...]]()
        for file in sorted((self.folder / "out").glob("batch-*.csv")):
            if int(file.name.partition(".")[0].removeprefix("batch-")) < batches:
                for change in csv.DictReader(file.read_text().splitlines()):
                    rows[change["key"], change["n"], change["m"]] += 1 if change["op"] == "+" else -1
        assert all(count in (0, 1) for count in rows.values()), rows
        return sorted((int(key), int(n), m) for (key, n, m), count in rows.items() if count)

    def wanted(self, read: dict[str, int]) -> list[Any]:
        """Ask DuckDB over the first rows of each source."""
        rows = [row for name, count in read.items() for row in self.rows(name, count)]
        database = duckdb.connect()
        database.execute("CREATE TABLE r (key INT, value VARCHAR)")
        if rows:
            values = ", ".join(f"({key}, '{value}')" for key, value in rows)
            database.execute(f"INSERT INTO r VALUES {values}")
        return sorted(database.execute(QUERY).fetchall())

    def rows(self, name: str, count: int | None = None) -> list[Row]:
        """Read the first rows of a source, or all."""
        if name == "f":
            return [(n % 5, str(n)) for n in range(count or 0)]
        if name == "g":
            return parsed("".join(self.pushed))[:count]
        if name == "a" and count is None:
            return [row for file in (self.folder / "a").iterdir() for row in parsed(file.read_text())]
        found = self._seen(name) if name == "a" else parsed((self.folder / f"{name}.csv").read_text())
        return found[:count]

    def _seen(self, name: str) -> list[Row]:
        """Read the rows of files in the order in which a run has seen them."""
        pieces, prefix = list[Any](), f"seen-{zlib.crc32(name.encode()):08x}-"
        for number in sorted(int(path.name.removeprefix(prefix)) for path in self._state().glob(f"{prefix}*")):
            pieces[number:] = json.loads(self._record(f"{prefix}{number}", "[]"))
        files = ((parsed(Path(piece["path"]).read_text()), piece) for piece in pieces)
        return [row for rows, piece in files for row in rows[piece["first"] : piece["stop"]]]

    def _state(self) -> Path:
        """Return the folder of the generation that is in force."""
        kept = self.folder / "kept"
        found = [int(path.name) for path in kept.iterdir() if path.name.isdecimal()] if kept.exists() else []
        return kept / str(max(found, default=0))

    def _record(self, name: str, default: str) -> str:
        """Read a record of the checkpoint, without its checksum."""
        path = self._state() / name
        text = path.read_text().rpartition(" ")[0] if path.exists() else default
        return text.split(" ")[0] if name == "batch" else text


def parsed(text: str) -> list[Row]:
    """Read whole lines."""
    lines = (line.split(",") for line in text.rpartition("\n")[0].splitlines())
    return [(int(key), value) for key, value in lines]


def descendants(pid: int) -> list[int]:
    """List the processes that a process has started, and those of these."""
    parents = dict[int, int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def command_of(pid: int) -> str:
    """Read the command line of a process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def campaign(folder: Path, backend: str, kills: int, seed: int, pause: tuple[float, float]) -> tuple[int, Counter[str]]:
    """Kill runs so many times while sources grow; return the number of batches and what was killed."""
    world, killed = World(folder, backend, seed), Counter[str]()
    for _ in range(kills):
        world.start(world.draw.choice([1, 10, 1000]))
        if begins := world.draw.random() < 0.7:
            world.live_until_a_batch()
        world.live(world.draw.uniform(*((0.0, 2.0) if begins else pause)))
        killed[world.kill()] += 1
        world.check()
    world.start(1000)
    world.end()
    return world.check(), killed


if __name__ == "__main__":
    backend, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        pause = (0.5, 4.0) if backend == "local" else (6.0, 20.0)
        print(backend, campaign(Path(folder), backend, kills, seed, pause))
