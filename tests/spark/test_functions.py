"""The table of functions in tests/runtime is what Spark answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.test_functions_of_spark import COLUMNS, ROWS, TABLE


@pytest.mark.spark
def oracle_the_table_of_functions_is_what_spark_answers(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    rows = cluster.session.read.schema(COLUMNS).json(str(path)).orderBy("n")
    zone = cluster.session.conf.get("spark.sql.session.timeZone")
    cluster.session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        found = rows.selectExpr(*(f"CAST({row['call']} AS STRING) AS v{n}" for n, row in enumerate(TABLE))).collect()
    finally:
        cluster.session.conf.set("spark.sql.session.timeZone", zone)
    assert {row["call"]: [answer[n] for answer in found] for n, row in enumerate(TABLE)} == {
        row["call"]: row["spark"] for row in TABLE
    }
