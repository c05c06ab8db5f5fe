"""Functions of ARRAYs, MAPs, time zones, formats and URLs: what Spark 4.3 answers, over four rows."""

import json
from pathlib import Path

import pytest

from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.compare_rows import rows_of
from squallpy.testing.example_runs import PrintedExample

FOLDER = Path(__file__).parent
# calls, and what Spark answers to CAST(… AS STRING) for each row, in UTC; tests/spark/test_functions.py asks it again
TABLE = [json.loads(line) for line in (FOLDER / "spark_functions.jsonl").read_text().splitlines()]
COLUMNS = "n INT, k INT, a ARRAY<INT>, s ARRAY<STRING>, x DOUBLE, m MAP<STRING, INT>, j STRING"
ROWS = [
    {"n": 0, "k": 1, "a": [1, 2, 2, None], "s": ["b", 'a"', None], "x": 1.5, "m": {"u": 1, "v": None},
     "j": '{"a":1,"b":[1.5,"x"]}'},
    {"n": 1, "k": 2, "a": [], "s": [], "x": -0.0, "m": {}, "j": "oops"},
    {"n": 2, "k": 3, "a": None, "s": None, "x": None, "m": None, "j": None},
    {"n": 3, "k": 2, "a": [3, 1], "s": ["é", "z", "Z", "b"], "x": 2.25, "m": {"w": 5}, "j": '{"a":"7","b":null}'},
]  # fmt: skip


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str | None]]:
    """What squallpy answers, by the call."""
    path: Path = tmp_path_factory.mktemp("functions") / "r.json"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    calls = ", ".join(f"CAST({row['call']} AS STRING) AS v{n}" for n, row in enumerate(TABLE))
    text = f"CREATE STREAM r ({COLUMNS}) USING json OPTIONS (path '{path}'); SELECT n, {calls} FROM r;"
    kept = PrintedExample()
    ScriptSession(Path("q.sql"), text=text).run(RunOptions(backend="local"), kept)
    rows = sorted(rows_of(kept.table), key=lambda row: int(row[0]))
    return {row["call"]: [given[n + 1] for given in rows] for n, row in enumerate(TABLE)}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row["call"])
def test_functions_answer_as_in_spark(row: dict[str, object], answers: dict[str, list[str | None]]) -> None:
    assert answers[str(row["call"])] == row["spark"]
