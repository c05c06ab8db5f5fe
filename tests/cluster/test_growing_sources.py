"""Runs over sources that grow, killed at any moment: KILLS=300 make cluster kills so often, on Spark a fifth of it."""

import os
from pathlib import Path

import pytest

from tests.growing import campaign

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
KILLS = int(os.environ.get("KILLS", "10"))


def fault_killed_in_one_process(tmp_path: Path) -> None:
    batches, killed = campaign(tmp_path, "local", KILLS, seed=7, pause=(0.5, 4.0))
    assert batches > KILLS and sum(killed.values()) == KILLS


@pytest.mark.spark
def fault_killed_on_spark(tmp_path: Path) -> None:
    batches, killed = campaign(tmp_path, "spark", -(-KILLS // 5), seed=7, pause=(8.0, 20.0))
    assert batches > 0 and sum(killed.values()) == -(-KILLS // 5)
