"""Which Java is chosen, without running any but one that starts with a small heap."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from squallpy.base.errors import SquallError
from squallpy.runtime.spark import java
from squallpy.runtime.spark.class_data_archive import archive_options, archive_path
from squallpy.runtime.spark.java import Java, find_java
from squallpy.runtime.spark.spark_session import java_options


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Makes Javas of given versions; the usual places are empty."""
    monkeypatch.setattr(java, "_USUAL", ())

    def make(name: str, version: str, with_note: bool = True) -> str:
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        if with_note:
            (home / "release").write_text(f'IMPLEMENTOR="Us"\nJAVA_VERSION="{version}"\n')
        says = f"echo '    java.home = {home}\n    java.version = {version}' >&2"
        (home / "bin" / "java").write_text(f"#!/bin/sh\n{says}\n")
        (home / "bin" / "java").chmod(0o755)
        return str(home)

    return make


@pytest.mark.parametrize("with_note", [True, False])
def test_the_first_that_fits_wins(install: Callable[..., Any], with_note: bool) -> None:
    old, fit = install("old", "1.8.0_402", with_note), install("fit", "21.0.4", with_note)
    assert str(find_java({"JAVA_HOME": fit, "PATH": f"{old}/bin"}).home) == fit
    assert str(find_java({"JAVA_HOME": old, "PATH": f"{fit}/bin"}).home) == fit
    assert find_java({"PATH": f"{fit}/bin"}) == Java(find_java({"JAVA_HOME": fit}).home, "21.0.4")


def test_what_is_missing_is_said(install: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(SquallError, match=r"^SQ8001 Spark needs Java 17 or newer, found none"):
        find_java({"PATH": str(tmp_path)})
    with pytest.raises(SquallError, match=r"found only Java 11\.0\.2 in .*old, install one"):
        find_java({"JAVA_HOME": install("old", "11.0.2"), "PATH": ""})


@pytest.mark.parametrize(("version", "major"), [("17", 17), ("17.0.15", 17), ("1.8.0_402", 8), ("25-ea", 25)])
def test_major_version(version: str, major: int) -> None:
    assert Java(Path("java"), version).major == major


def test_the_class_archive_is_used_only_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    one, other = Java(tmp_path / "one", "17.0.15"), Java(tmp_path / "other", "17.0.15")
    assert archive_options(one) == ""
    archive_path(one).parent.mkdir(parents=True)
    archive_path(one).touch()
    assert archive_options(one).startswith(f"-XX:SharedArchiveFile={tmp_path}/share/squallpy/spark-")
    assert archive_options(other) == ""


@pytest.mark.spark
@pytest.mark.parametrize("heap", ["256m", "2g"])
def test_a_driver_starts_with_a_heap_of_any_size(heap: Any) -> None:
    command = [str(find_java().home / "bin" / "java"), f"-Xmx{heap}", *java_options(None).split(), "-version"]
    assert subprocess.run(command, capture_output=True).returncode == 0
