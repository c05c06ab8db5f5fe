"""Random cases as step tests: DuckDB's answer after every batch."""

import tempfile
from pathlib import Path

import duckdb
from hypothesis import reject

from squallpy.base.errors import SquallError
from squallpy.testing.engines import MemoryEngine
from squallpy.testing.step_tests import run_steps


def run_text(text: str, engine: MemoryEngine) -> None:
    """Run the text of a step test."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.slt"
        path.write_text(text)
        run_steps(path, engine, Path(folder))


def run_supported(text: str, engine: MemoryEngine, *refusals: str) -> None:
    """Run the text of a step test; a case that is refused with one of these codes, or by DuckDB, is no case."""
    try:
        run_text(text, engine)
    except SquallError as error:
        if error.code not in refusals:
            raise
        reject()
    except duckdb.Error:
        reject()
