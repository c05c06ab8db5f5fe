"""A standalone cluster whose parts are killed at any moment: every change is that of the undisturbed run."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from squallpy.testing.standalone_cluster import Service, Standalone, wait
from tests.runs import BATCHES, COFACTOR, MANY_STAGES, ONE_STAGE, PAIRS, lost, on, printed, undisturbed, write

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.slow]


def reach(out: Path, batches: int, run: "subprocess.Popen[str]", patience: float = 240) -> None:
    """Wait until so many batches are out."""
    wait(lambda: run.poll() is not None or (out.is_dir() and len(list(out.glob("batch-*"))) >= batches), patience)
    assert run.poll() is None, f"the run ended: {run.communicate()[1]}"


def kill(pids: list[int]) -> None:
    assert pids, "nothing to kill"
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def holders(workers: list[Service]) -> list[set[str]]:
    """Which partitions each worker has local state of."""
    return [{path.name for path in worker.state.glob("*/partition-*")} for worker in workers]


@pytest.mark.parametrize("script", [ONE_STAGE, MANY_STAGES, COFACTOR], ids=["one stage", "many stages", "cofactor"])
def fault_executors_killed_in_mid_batch(fresh_standalone: Standalone, tmp_path: Path, script: str) -> None:
    path, out, metrics, draw = write(tmp_path, script), tmp_path / "out", tmp_path / "m.jsonl", random.Random(3)
    run = on(fresh_standalone.master, path, out, "--metrics", str(metrics))
    reach(out, 1, run)
    assert [len(held) for held in holders(fresh_standalone.workers)] == [1, 1], "each worker has a partition"
    for batches, worker in [(4, 0), (14, 1), (24, 0)]:
        reach(out, batches, run)
        time.sleep(draw.uniform(0, 0.4))  # anywhere in a batch
        kill(wait(fresh_standalone.workers[worker].executors))
    _, said = run.communicate(timeout=240)
    assert (run.returncode, said) == (0, "")
    assert printed(out) == undisturbed(path)
    assert lost(metrics), "nothing had to be rebuilt"


@pytest.mark.parametrize("script", [ONE_STAGE, MANY_STAGES, PAIRS], ids=["one stage", "many stages", "pairs"])
def fault_python_workers_killed(fresh_standalone: Standalone, tmp_path: Path, script: str) -> None:
    path, out, draw = write(tmp_path, script), tmp_path / "out", random.Random(5)
    run = on(fresh_standalone.master, path, out)
    for batches in (2, 9, 16, 25):
        reach(out, batches, run)
        time.sleep(draw.uniform(0, 0.4))
        kill(wait(draw.choice(fresh_standalone.workers).pythons))
    _, said = run.communicate(timeout=240)
    assert (run.returncode, said) == (0, "")
    assert printed(out) == undisturbed(path)


@pytest.mark.parametrize("script", [ONE_STAGE, MANY_STAGES, COFACTOR], ids=["one stage", "many stages", "cofactor"])
def fault_drivers_killed_and_hosts_lost(fresh_standalone: Standalone, tmp_path: Path, script: str) -> None:
    """A driver is killed; the next one finds one worker less, the one after that another in its place."""
    path, out, state = write(tmp_path, script), tmp_path / "out", tmp_path / "checkpoint"
    for turn, batches in enumerate((7, 19)):
        run = on(fresh_standalone.master, path, out, "--checkpoint", str(state))
        reach(out, batches, run)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
        if turn == 0:
            fresh_standalone.workers.pop(0).stop()
        else:
            fresh_standalone.add_worker(5)
    assert len(list(out.glob("batch-*"))) < BATCHES
    run = on(fresh_standalone.master, path, out, "--checkpoint", str(state))
    _, said = run.communicate(timeout=240)
    assert (run.returncode, said) == (0, "")
    assert printed(out) == undisturbed(path)


def fault_other_partitions_on_any_file_system(fresh_standalone: Standalone, tmp_path: Path) -> None:
    """Killed, started again with three partitions in place of two, killed, and ended on half of the hosts."""
    path, out, metrics = write(tmp_path, MANY_STAGES), tmp_path / "out", tmp_path / "m.jsonl"
    kept = ["--checkpoint", f"fsspec+file://{tmp_path}/checkpoint"]
    three = [*kept, "--set", "partitions=3", "--metrics", str(metrics)]
    for options, batches in ((kept, 7), (three, 19)):
        run = on(fresh_standalone.master, path, out, *options)
        reach(out, batches, run)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    fresh_standalone.workers.pop().stop()
    run = on(fresh_standalone.master, path, out, *three)
    _, said = run.communicate(timeout=240)
    assert (run.returncode, said) == (0, "")
    assert printed(out) == undisturbed(path)
