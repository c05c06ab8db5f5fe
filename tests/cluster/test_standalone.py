"""Whole queries on a standalone cluster of two workers."""

from pathlib import Path

import pytest

from tests.cluster.queries import on, printed, undisturbed, write
from tests.cluster.standalone import Standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def differential_a_cluster_equals_one_process(standalone: Standalone, tmp_path: Path) -> None:
    script, out = write(tmp_path), tmp_path / "out"
    run = on(standalone.master, script, out)
    _, said = run.communicate(timeout=180)
    assert (run.returncode, said) == (0, "")
    assert printed(out) == undisturbed(script)
