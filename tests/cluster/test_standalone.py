"""Whole queries on a standalone cluster of two workers."""

from pathlib import Path

import pytest

from squallpy.testing.standalone_cluster import Standalone
from tests.runs import lost, on, printed, undisturbed, write

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.cluster]


def differential_a_cluster_equals_one_process(standalone: Standalone, tmp_path: Path) -> None:
    script, out, size = write(tmp_path), tmp_path / "out", ("--batch-rows", "250")
    run = on(standalone.master, script, out, *size, "--metrics", str(tmp_path / "m.jsonl"))
    _, said = run.communicate(timeout=180)
    assert (run.returncode, said) == (0, "")
    assert printed(out) == undisturbed(script, *size, batches=8)
    assert lost(tmp_path / "m.jsonl") == {}, "a partition was somewhere else than its state"
    assert not any(list(worker.state.glob("*/partition-*")) for worker in standalone.workers), (
        "mapped files stay behind"
    )
