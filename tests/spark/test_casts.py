"""The table of casts in tests/runtime is what Spark answers."""

import json
from pathlib import Path
from typing import Any

import pytest

TABLE = Path(__file__).parents[1] / "runtime" / "spark_casts.jsonl"
TYPES = (
    "INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(38,10)", "DECIMAL(38,38)", "DECIMAL(3,0)", "BOOLEAN", "DATE",
    "TIMESTAMP",
)  # fmt: skip


@pytest.mark.spark
def oracle_the_table_of_casts_is_what_spark_answers(cluster: Any) -> None:
    table = [json.loads(line) for line in TABLE.read_text().splitlines()]
    texts = cluster.session.createDataFrame([(i, row["text"]) for i, row in enumerate(table)], "i int, text string")
    casts = [f"CAST(TRY_CAST(text AS {type}) AS STRING) AS `{type}`" for type in TYPES]
    zone = cluster.session.conf.get("spark.sql.session.timeZone")
    cluster.session.conf.set("spark.sql.session.timeZone", "UTC")
    try:
        rows = texts.selectExpr("i", *casts).collect()
    finally:
        cluster.session.conf.set("spark.sql.session.timeZone", zone)
    for row in rows:
        expected = table[row["i"]]
        for type in TYPES:
            if type == "TIMESTAMP" and "TIMESTAMP" in expected and "DATE" not in expected:
                continue  # a time alone is one of today
            assert row[type] == expected.get(type), (expected["text"], type)
