"""The sources of docs/sources.md are sources: each block of Python is a module, the SQL below it a script over that."""

import re
import sys
from pathlib import Path

import pytest

from squallpy.script_session import RunOptions, ScriptSession
from tests.base.test_entry_points import install
from tests.kept import Kept, StopWhenIdle

PAGE = (Path(__file__).parents[2] / "docs" / "sources.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n```sql\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def answer(folder: Path, script: str) -> list[str]:
    sink = Kept()
    (folder / "q.sql").write_text(script)
    ScriptSession(folder / "q.sql").run(RunOptions("local", changes=True, batch_rows=3), sink, StopWhenIdle())
    return sink.rows


def test_a_data_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    text, script = BLOCKS[0]
    (tmp_path / "numbers_source.py").write_text(text)
    assert answer(tmp_path, script) == [str({"n": 10, "total": sum(n * n for n in range(10))})]


def test_a_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    text, script = BLOCKS[1]
    (tmp_path / "generator.py").write_text(text)
    (tmp_path / "q.sql").write_text(script)
    sink = Kept()
    ScriptSession(tmp_path / "q.sql").run(RunOptions("local", changes=True, batch_rows=3), sink)
    assert sink.rows == [str({"n": 10, "total": sum(n * n for n in range(10))})]


def test_nested_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator may yield lists, dicts and tuples for ARRAY, MAP and STRUCT."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "nests.py").write_text("def rows(options):\n    yield [1, 2], {'a': 3}, (4, 'x')\n")
    columns = "a ARRAY<INT>, m MAP<VARCHAR, INT>, s STRUCT<k INT, v VARCHAR>"
    script = f"CREATE STREAM r ({columns}) USING python OPTIONS (generator 'nests.rows'); SELECT a, m, s FROM r;"
    (tmp_path / "q.sql").write_text(script)
    sink = Kept()
    ScriptSession(tmp_path / "q.sql").run(RunOptions("local", changes=True), sink)
    assert sink.rows == [str({"a": "[1,2]", "m": '{"a":3}', "s": '{"k":4,"v":"x"}'})]


def test_a_source_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, script = BLOCKS[2]
    install(tmp_path, "ticks_source", "ticks = ticks_source:Ticks", text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert answer(tmp_path, script) == [str({"n": 7, "total": 21})]
    with pytest.raises(Exception, match=r'SQ7002 .* unknown option "untill" of ticks, did you mean "until"'):
        answer(tmp_path, script.replace("until", "untill"))
