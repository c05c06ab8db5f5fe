"""Runs that are killed, with their server, while tables change: in the end the sink is the query over the tables."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.connectors.killed_runs import CATCH_UP, let_run, number_of_kills
from tests.connectors.servers import PostgresServer
from tests.connectors.test_postgres_changes import TABLES, Changes, answer, script
from tests.growing import ROOT, command_of, descendants


class World:
    """A server whose tables change all the time, and a run that follows them."""

    def __init__(self, server: PostgresServer, folder: Path, backend: str, seed: int) -> None:
        self.server, self.folder, self.backend = server, folder, backend
        self.draw, self._ended = random.Random(seed), threading.Event()
        server.execute(*TABLES)
        _, query = script(server.url).rsplit(";", 2)[:2]
        (folder / "q.sql").write_text(script(server.url).removesuffix(f"{query};"))
        self._writer = threading.Thread(target=self._change, args=(seed,), daemon=True)
        self.run: subprocess.Popen[str] | None = None

    def _change(self, seed: int) -> None:
        changes = Changes(seed)
        while not self._ended.is_set():
            try:
                changes.apply(self.server)
            except Exception:  # NB: the server is away
                time.sleep(0.05)
            time.sleep(0.01)

    def start(self, rows: int = 0) -> None:
        """Start the run where it was, with so many rows in a batch."""
        command = [sys.executable, "-m", "squallpy.terminal", "run", "q.sql", "--checkpoint", "kept"]
        command += ["--backend", self.backend, "--batch-rows", str(rows or self.draw.choice([1, 20, 1000]))]
        command += ["--set", f"local_dir={self.folder}/mapped", "--log-level", "error"]
        more = ["--set", f"partitions={self.draw.choice([2, 3])}"] if self.backend == "spark" else []
        self.run = subprocess.Popen(
            [*command, *more], cwd=self.folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip

    def kill(self) -> str:
        """Kill the server, which is started again, a process of Spark, or the run with all its processes."""
        assert self.run
        assert self.run.poll() is None, self.run.communicate()[1]
        what = self.draw.choice(["server", "run", *(["java", "worker"] if self.backend == "spark" else [])])
        if what == "server":
            self.server.kill()
            time.sleep(self.draw.uniform(0, 0.5))
            self.server.start()
            return what
        pattern = {"java": "java", "worker": "worker_daemon"}.get(what)
        for pid in [pid for pid in descendants(self.run.pid) if pattern and pattern in command_of(pid)][-1:]:
            os.kill(pid, signal.SIGKILL)
            time.sleep(self.draw.uniform(0, 1))
        self._end()
        self.start()
        return what

    def _end(self) -> None:
        assert self.run
        os.killpg(self.run.pid, signal.SIGKILL)
        self.run.communicate()

    def campaign(self, kills: int) -> Counter[str]:
        """Kill something again and again; then let the run read all that has come, and compare."""
        self._writer.start()
        self.start()
        killed = Counter[str]()
        for number in range(kills):
            let_run(self.folder, self.draw, number, self.backend, partial(time.sleep, 0.05))
            killed[self.kill()] += 1
        time.sleep(1.5)
        self._ended.set()
        self._writer.join()
        self._end()
        self.start(100_000)  # NB: after many kills, batches of a transaction each would take hours for all that waits
        while not answer(self.server):
            Changes(self.draw.randrange(1000)).apply(self.server)
        wanted, until = answer(self.server), time.monotonic() + CATCH_UP
        while (found := self._written()) != wanted:
            assert self.run and self.run.poll() is None, self.run.communicate()[1]
            assert time.monotonic() < until, f"{found} is not {wanted} after {killed}"
            time.sleep(0.1)
        self.run.terminate()
        _, said = self.run.communicate(timeout=CATCH_UP)
        assert self.run.returncode == 0, said
        assert self._written() == wanted
        return killed

    def _written(self) -> Counter[tuple[object, ...]]:
        if not self.server.execute("SELECT 1 FROM pg_tables WHERE tablename = 'totals'"):
            return Counter()
        return Counter(self.server.execute("SELECT name, n, total, latest, about, paid, seconds FROM totals"))


@pytest.mark.connectors
def fault_kills_in_one_process(postgres: PostgresServer, tmp_path: Path) -> None:
    print(World(postgres, tmp_path, "local", 1).campaign(number_of_kills("local")))


@pytest.mark.connectors
@pytest.mark.spark
def fault_kills_on_spark(postgres: PostgresServer, tmp_path: Path) -> None:
    print(World(postgres, tmp_path, "spark", 2).campaign(number_of_kills("spark")))
