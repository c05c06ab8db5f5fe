"""Runs that begin at once and make what is not there yet: the one that comes second takes what the first has made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.sql import IcebergNamespaceProperties, IcebergTables, SqlCatalog
from sqlalchemy import Table, create_engine, event

from tests.connectors.runs import run


@contextmanager
def coming_between(owner: Any, name: str, other: Callable[[], object], after: bool = False) -> Iterator[None]:
    """Let another run do something just before the first call of a function, or just after it."""
    made, patch, done = getattr(owner, name), pytest.MonkeyPatch(), list[bool]()

    def call(*given: Any, **named: Any) -> Any:
        patch.undo()
        answer = made(*given, **named) if after else None
        other()
        done.append(True)
        return answer if after else made(*given, **named)

    patch.setattr(owner, name, call)
    try:
        yield
    finally:
        patch.undo()
    assert done, f"{name} is called"


class IcebergRun:
    """A run that writes to the table `db.t` of a catalog."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.uri = folder, f"sqlite:///{folder}/catalog.db"
        (folder / "r.csv").write_text("1,2\n3,4\n")

    @property
    def catalog(self) -> Catalog:
        return load_catalog("default", uri=self.uri, warehouse=f"file://{self.folder}")

    def write(self, sink: str) -> None:
        place = f"catalog.uri '{self.uri}', catalog.warehouse 'file://{self.folder}', table 'db.t'"
        stream = f"CREATE STREAM r (k BIGINT, v BIGINT) USING csv OPTIONS (path '{self.folder}/r.csv');"
        run(f"{stream} CREATE SINK {sink} USING iceberg OPTIONS ({place}, mode 'append') AS SELECT k, v FROM r;")

    @property
    def rows(self) -> list[int]:
        return sorted(self.catalog.load_table("db.t").scan().to_arrow().column("k").to_pylist())


@pytest.mark.parametrize("made", [[0], [1], [0, 1]])
def test_a_sql_catalog_whose_tables_another_run_makes(tmp_path: Path, made: list[int]) -> None:
    """It makes them after this run has looked for them; each by itself, so that this run comes in between again."""
    here = IcebergRun(tmp_path)
    tables: list[Table] = [IcebergTables.__table__, IcebergNamespaceProperties.__table__]  # type: ignore[list-item]
    for number in made:

        def create(table: Table, *_: object, **__: object) -> None:
            table.create(create_engine(here.uri))

        event.listen(tables[number], "before_create", create, once=True)
    here.write("a")
    assert here.rows == [1, 3]


def test_a_namespace_that_another_run_makes(tmp_path: Path) -> None:
    here = IcebergRun(tmp_path)
    with coming_between(SqlCatalog, "namespace_exists", lambda: here.catalog.create_namespace("db"), after=True):
        here.write("a")
    assert here.rows == [1, 3]


@pytest.mark.parametrize("where", ["create_table", "commit_table", "_update_and_stage_table"])
def test_an_iceberg_table_that_another_run_makes(tmp_path: Path, where: str) -> None:
    """Both write to it: before this one makes it, or takes it over, or while it does."""
    here = IcebergRun(tmp_path)
    here.catalog.create_namespace("db")
    with coming_between(SqlCatalog, where, lambda: here.write("b")):
        here.write("a")
    assert here.rows == [1, 1, 3, 3]
