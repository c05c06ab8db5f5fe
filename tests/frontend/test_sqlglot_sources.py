"""sqlglot is imported from its sources where compiled modules lie beside them, as sqlglot[c] puts them there."""

import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from unittest.mock import patch

import pytest
import sqlglot
from sqlglot import parser

from squallpy.base.errors import SquallError
from squallpy.base.settings import Settings
from squallpy.script_session import ScriptSession

COMPILED = ("parser", "generator", "tokenizer_core", "helper", "parsers/spark", "expressions/core")
QUERY = "CREATE STREAM r (a INT) USING csv OPTIONS (path 'r.csv'); SELECT a FROM r;"


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with a copy of sqlglot in which modules are compiled: files that nothing can load."""
    found = tmp_path / "packages" / "sqlglot"
    shutil.copytree(Path(sqlglot.__file__).parent, found, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for module in COMPILED:
        assert (found / f"{module}.py").is_file()
        (found / f"{module}{EXTENSION_SUFFIXES[0]}").write_bytes(b"\x7fELF")
    return found.parent


def run(beside: Path, code: str) -> str:
    """Run a program for which that copy of sqlglot is the one that is installed."""
    lines = f"import sys; sys.path.insert(0, {str(beside)!r})\n{code}"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, cwd=Path(__file__).parents[2])
    return done.stdout + done.stderr


def test_compiled_modules_are_passed_over(beside: Path) -> None:
    assert "ImportError" in run(beside, "import sqlglot.parser")
    parsed = (
        "from squallpy.frontend.query import tokenize; import sqlglot\nprint(sqlglot.__file__, tokenize('SELECT 1'))"
    )
    found = run(beside, parsed)
    assert str(beside) in found and "TokenType.SELECT" in found


def fault_the_compiled_parser_was_imported_before(tmp_path: Path) -> None:
    script = tmp_path / "q.sql"
    script.write_text(QUERY)
    with patch.object(parser, "__file__", f"parser{EXTENSION_SUFFIXES[0]}"), pytest.raises(SquallError) as raised:
        _ = ScriptSession(script, Settings()).script
    assert raised.value.code == "SQ8009" and "pip uninstall sqlglotc" in str(raised.value)
