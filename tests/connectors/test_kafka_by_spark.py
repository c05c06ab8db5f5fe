"""Spark's own connector of Kafka, with the Spark that is installed: its messages come exactly once."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.connectors.servers import KafkaServer, find_spark_connector
from tests.growing import ROOT

SCRIPT = """CREATE STREAM r (key VARCHAR, value VARCHAR) USING spark OPTIONS (format 'kafka',
    startingOffsets 'earliest', 'kafka.bootstrap.servers' '{address}', subscribe 'by-spark',
    'kafka.isolation.level' 'read_committed');
SELECT key, COUNT(*) AS n, SUM(CAST(value AS INT)) AS v FROM r GROUP BY key;"""


@pytest.mark.connectors
@pytest.mark.spark
def test_messages_that_sparks_connector_reads(kafka: KafkaServer, tmp_path: Path) -> None:
    """Those of aborted transactions do not count, and a run that is resumed reads none again."""
    kafka.create("by-spark", 2)
    (tmp_path / "q.sql").write_text(SCRIPT.format(address=kafka.address))
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": "by-spark"})
    producer.init_transactions(30)
    wanted, sums = Counter[str](), Counter[str]()
    command = [sys.executable, "-m", "squallpy.terminal", "run", "q.sql", "--backend", "spark", "--checkpoint", "kept"]
    command += ["--trigger", "available-now", "--mode", "final", "--conf", f"spark.jars={find_spark_connector()}"]
    command += ["--set", f"local_dir={tmp_path}/mapped"]
    for turn in range(2):
        for commits in (True, False, True):
            producer.begin_transaction()
            for number in range(30):
                producer.produce("by-spark", str(number), key=f"k{number % 4}")
                wanted[f"k{number % 4}"] += commits
                sums[f"k{number % 4}"] += number * commits
            producer.flush(30)
            producer.commit_transaction(30) if commits else producer.abort_transaction(30)
        env = os.environ | {"PYTHONPATH": str(ROOT)}
        ended = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert ended.returncode == 0, ended.stderr
        head, *rows = ended.stdout.split()
        assert head == "key,n,v"
        assert sorted(rows) == sorted(f"{key},{n},{sums[key]}" for key, n in wanted.items()), turn
