"""Targets that have rows: a run that begins anew, and is killed before its first batch, begins anew once more."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import psycopg
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog

from squallpy.base.errors import SquallError
from squallpy.run_plans import RunPlanner
from tests.connectors.runs import Row, Running, run
from tests.connectors.servers import PostgresServer
from tests.kept import Killed

Target = tuple[str, Callable[[], Any]]
"""The sink without its mode, and what reads the rows of its target."""


@pytest.fixture(params=["postgres", "delta", "iceberg"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    match request.param:
        case "postgres":
            server: PostgresServer = request.getfixturevalue("postgres")

            def rows() -> list[dict[str, Any]]:
                with psycopg.connect(server.url) as connection:
                    return [{"k": k, "v": v} for k, v in connection.execute("SELECT k, v FROM s").fetchall()]

            return f"postgres OPTIONS (url '{server.url}', table 's'", rows
        case "delta":
            path = str(tmp_path / "s")
            return f"delta OPTIONS (path '{path}'", lambda: DeltaTable(path).to_pyarrow_table().to_pylist()
    place = f"sqlite:///{tmp_path}/catalog.db"
    told = f"iceberg OPTIONS (catalog.uri '{place}', catalog.warehouse 'file://{tmp_path}', table 'db.s'"
    catalog = load_catalog("default", uri=place, warehouse=f"file://{tmp_path}")
    return told, lambda: catalog.load_table("db.s").scan().to_arrow().to_pylist()


@pytest.mark.parametrize("existing", ["keep", "replace"])
def fault_killed_before_the_first_batch(
    existing: str, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, rows = target
    stream = f"CREATE STREAM r (k INT, v INT) USING csv OPTIONS (path '{tmp_path}/r.csv');"
    script = f"{stream} CREATE SINK s USING {sink}, mode 'upsert'%s) AS SELECT k, SUM(v) AS v FROM r GROUP BY k;"
    (tmp_path / "r.csv").write_text("".join(f"{k},1\n" for k in range(8)))
    run(script % "", checkpoint=tmp_path / "1", rows=2)
    (tmp_path / "r.csv").write_text("".join(f"{k},7\n" for k in (20, 21, 22)))
    anew, executor = script % f", existing '{existing}'", RunPlanner.open_executor

    def dying(*_: object) -> NoReturn:
        raise Killed

    monkeypatch.setattr(RunPlanner, "open_executor", dying)
    with pytest.raises(Killed):
        run(anew, checkpoint=tmp_path / "2", rows=2)
    monkeypatch.setattr(RunPlanner, "open_executor", executor)
    run(anew, checkpoint=tmp_path / "2", rows=2)
    before: list[Row] = [(k, 1) for k in range(8)] if existing == "keep" else []
    assert Counter((row["k"], row["v"]) for row in rows()) == Counter([*before, (20, 7), (21, 7), (22, 7)])


def fault_another_checkpoint_of_the_query(target: Target, tmp_path: Path) -> None:
    """Of two runs that write to one target the later one goes on; a checkpoint that is behind it is refused."""
    sink, rows = target
    stream = f"CREATE STREAM r (k INT, v INT) USING csv OPTIONS (path '{tmp_path}/in', watch 'true');"
    written = f"CREATE SINK s USING {sink}, mode 'upsert', existing 'keep') AS SELECT k, SUM(v) AS v FROM r GROUP BY k;"
    script, wanted = f"{stream} {written} SELECT COUNT(*) AS n FROM r;", Counter[Row]()
    (tmp_path / "in").mkdir()

    def come(k: int) -> None:
        (tmp_path / f"{k}.csv").write_text(f"{k},{k}\n")
        (tmp_path / f"{k}.csv").rename(tmp_path / "in" / f"{k}.csv")  # NB: a run that watches sees it whole
        wanted[(k, k)] += 1

    def is_written() -> bool:
        return Counter((row["k"], row["v"]) for row in rows()) == wanted

    come(1)
    with Running(script, tmp_path / "1") as first:
        first.wait_for(lambda: first.answers.batches > 0)
        with Running(script, tmp_path / "2") as second:
            second.wait_for(lambda: second.answers.batches > 0)
            come(2)
            assert "SQ7005" in str(ended := first.ended()) and "another run has taken over" in str(ended), ended
            second.wait_for(is_written)
    for k in (3, 4):
        come(k)
        run(script, second.answers, tmp_path / "2")
    assert is_written()
    says = r"SQ7005 .* has 4 batches of this query, and the checkpoint has given 1"
    with pytest.raises(SquallError, match=says) as refused:
        run(script, first.answers, tmp_path / "1")
    assert refused.value.span and script[refused.value.span.column - 1 :].startswith(("table 's'", "path", "table 'db"))
    assert is_written()
