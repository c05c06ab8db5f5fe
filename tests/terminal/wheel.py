"""The package as its wheel has it, and the line of spark-submit that it prints."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def without_us() -> dict[str, str]:
    """An environment by which nobody finds the repository."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}


def unpacked_wheel(folder: Path) -> Path:
    """Builds the wheel in a folder, and unpacks it there; the kernels of the repository stay compiled."""
    source, there = folder / "source", folder / "there"
    for part in ("squallpy", "grammar", "docs/errors"):
        shutil.copytree(ROOT / part, source / part, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, source / part)
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", str(folder))
    subprocess.run((*pip, str(source)), check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(there)
    for compiled in (ROOT / "squallpy").rglob("*.nb[ci]"):
        target = there / compiled.relative_to(ROOT)
        target.parent.mkdir(exist_ok=True)
        shutil.copy(compiled, target)
    return there


def printed_line(installed: Path, room: Path, *arguments: str) -> str:
    """What `squall submit --print` of the unpacked wheel says."""
    command = (sys.executable, "-m", "squallpy.terminal", "submit", "--print", *arguments)
    environment = without_us() | {"PYTHONPATH": str(installed)}
    return subprocess.run(command, cwd=room, env=environment, capture_output=True, text=True, check=True).stdout
