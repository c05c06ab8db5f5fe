"""Tables of grammars are kept beside Python's bytecode, and made anew where they cannot be used."""

import shutil
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from lark import Lark
from lark.parsers import lalr_analysis

from squallpy.frontend import grammars
from squallpy.frontend.grammars import Parsed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with a grammar of its own, whose tables go to another folder."""
    (tmp_path / "grammar").mkdir()
    shutil.copy(grammars.grammar_path("window"), tmp_path / "grammar")
    monkeypatch.setattr(grammars, "PACKAGE", tmp_path)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "kept"))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return tmp_path


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows when tables are made."""
    calls, compute = list[int](), lalr_analysis.LALR_Analyzer.compute_lalr

    def counted(analyzer: lalr_analysis.LALR_Analyzer) -> None:
        calls.append(1)
        compute(analyzer)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(lalr_analysis.LALR_Analyzer, "compute_lalr", counted)
    return calls


def load() -> Lark:
    return grammars.load_grammar.__wrapped__("window")


def tables() -> Path:
    return Path(cache_from_source(str(grammars.grammar_path("window")))).with_suffix(".tables")


def shape(parser: Lark) -> Parsed:
    return parser.parse("RANGE 5 MINUTE SLIDE 1 MINUTE")


def test_tables_are_read_where_they_are_of_the_same_grammar(folder: Path, made: list[int]) -> None:
    first = shape(load())
    count = len(made)
    assert count and tables().is_file() and shape(load()) == first and len(made) == count
    grammar = folder / "grammar" / "window.lark"
    grammar.write_text(grammar.read_text() + "\n// another one\n")
    assert shape(load()) == first and len(made) == count + 1


@pytest.mark.parametrize("size", [0, 10, 5000])
def fault_damaged_tables_are_made_anew(folder: Path, made: list[int], size: int) -> None:
    first = shape(load())
    tables().write_bytes(tables().read_bytes()[:size])
    count = len(made)
    assert shape(load()) == first and len(made) == count + 1
    assert shape(load()) == first and len(made) == count + 1


def test_nothing_is_written_where_python_may_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert shape(load()) and not (folder / "kept").exists()


def fault_no_folder_can_be_made(folder: Path) -> None:
    (folder / "kept").write_text("")
    assert shape(load())
