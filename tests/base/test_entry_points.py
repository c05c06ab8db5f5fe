"""Entry points: what packages bring is found by name, and a package that is broken is named."""

import sys
from pathlib import Path

import pytest

from squallpy.base.entry_points import SOURCES, load, names_of
from squallpy.base.errors import SquallError


def install(folder: Path, package: str, points: str, code: str = "", group: str = SOURCES) -> None:
    """Put a package with entry points, of sources by default, into a folder."""
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{points}\n")
    (folder / f"{package}.py").write_text(code)


def test_a_name_stands_for_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "brings_ticks", "Ticks = brings_ticks:Ticks", "class Ticks: pass\n")
    assert "ticks" not in names_of(SOURCES)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert "ticks" in names_of(SOURCES)
    assert load(SOURCES, "TICKS").__name__ == "Ticks"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", r'no entry points of squallpy.sources are called "absent", install the package that brings it'),
        ("torn", r"torn:Torn of the package torn cannot be imported: ModuleNotFoundError: No module named 'nowhere'"),
        ("twice", r'2 entry points of squallpy.sources are called "twice", of the packages one and other, uninstall'),
    ],
)
def fault_nothing_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    install(tmp_path, "torn", "torn = torn:Torn", "import nowhere\n")
    install(tmp_path, "one", "twice = one:One")
    install(tmp_path, "other", "twice = other:Other")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(SquallError, match=f"SQ8009 {message}"):
        load(SOURCES, name)
