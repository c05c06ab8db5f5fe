"""Runs over Kafka on a standalone cluster whose executors, drivers and brokers are killed."""

import os
import signal
from itertools import count
from pathlib import Path

import pytest

from squallpy.runtime.spark.package_archive import package_archive
from squallpy.testing.standalone_cluster import Standalone, wait
from tests.connectors.killed_runs import kill_again_and_again
from tests.connectors.servers import KafkaServer
from tests.connectors.test_kafka_sinks import World, compacted, script

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.connectors]


def fault_kills_on_a_cluster(kafka: KafkaServer, tmp_path: Path) -> None:
    """The driver, or a process of its, is killed twice, then an executor in mid-batch, or the broker."""
    package_archive()
    world, address, turns = World(kafka, "killed-cluster", 6), f"'{kafka.address}', ", count()
    patient = script(kafka, world.topic).replace(address, f"{address}connect_timeout '3 minutes', ")
    (tmp_path / "q.sql").write_text(patient)

    with Standalone(tmp_path / "standalone") as cluster:

        def hit() -> None:
            if next(turns) % 2:
                kafka.kill()
                kafka.start()
                return
            worker = world.draw.choice(cluster.workers)
            for pid in wait(worker.executors):
                os.kill(pid, signal.SIGKILL)

        def is_done() -> bool:
            return compacted(kafka, f"{world.topic}-out") == world.answer

        options = ["--master", cluster.master, "--conf", "spark.driver.host=127.0.0.1"]
        kill_again_and_again(tmp_path, "spark", world.draw, world.change, is_done, hit, 1000, (), options)
