"""Data of benchmarks that test runs share."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from squallpy.testing.tpc import Benchmark

PROGRAM = """#!/bin/sh
echo made >> {log}
for word in "$@"; do folder=$word; done
sleep 0.2
echo 1 > $folder/t.tbl
"""


def test_tables_are_made_once_by_runs_that_begin_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another one would replace the files that the first reads."""
    program, log = tmp_path / "make-tables", tmp_path / "log"
    program.write_text(PROGRAM.format(log=log))
    program.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    benchmark = Benchmark("tpcx", {"t": "t_key INT"}, {}, (), str(program), ())
    with ThreadPoolExecutor(4) as pool:
        folders = [*pool.map(lambda _: benchmark.generate_cached(0.5, "tbl"), range(4))]
    assert {(folder / "t.tbl").read_text() for folder in folders} == {"1\n"} and log.read_text() == "made\n"
