"""The search for Java, before Spark fails without one half a minute later.

find_java()   →  Java(home=/usr/lib/jvm/java-17-openjdk-amd64, version="17.0.15")
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.base.records import dataclass

NEEDED = 17
_USUAL = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
)


@dataclass(frozen=True, slots=True)
class Java:
    """An installed Java: its folder, and the version that it reports."""

    home: Path
    version: str

    @property
    def major(self) -> int:
        """`17.0.15` → 17, `1.8.0_402` → 8."""
        parts = [int(part) for part in re.findall(r"\d+", self.version)]
        return parts[1] if parts[0] == 1 and len(parts) > 1 else parts[0]

    def __str__(self) -> str:
        return f"Java {self.version} in {self.home}"


def find_java(environment: Mapping[str, str] = os.environ) -> Java:
    """Find the first Java ≥ 17 of JAVA_HOME, the PATH and the usual folders; SQ8001 if there is none."""
    unfit = []
    for executable in _candidates(environment):
        java = inspect(executable)
        if java and java.major >= NEEDED:
            return java
        if java:
            unfit.append(java)
    found = f"found only {unfit[0]}" if unfit else "found none in JAVA_HOME, on the PATH or in the usual places"
    hint = "install one (Debian: apt-get install openjdk-17-jre-headless) or set JAVA_HOME"
    raise SquallError("SQ8001", f"Spark needs Java {NEEDED} or newer, {found}", hint=hint)


def inspect(executable: Path) -> Java | None:
    """Read the version of a `java`; None if it is no Java at all."""
    home = executable.resolve().parent.parent
    try:
        note = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return _ask(executable)
    version = re.search(r'^JAVA_VERSION="(\d[^"]*)"', note, re.MULTILINE)
    return Java(home, version[1]) if version else _ask(executable)


def _ask(executable: Path) -> Java | None:
    # NB: takes half a second; needed for the wrapper of a version manager, which has no release file
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    home, version = (
        re.search(rf"^\s*{key} = (\S.*?)\s*$", said, re.MULTILINE) for key in ("java.home", "java.version")
    )
    return Java(Path(home[1]), version[1]) if home and version and version[1][0].isdigit() else None


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    if home := environment.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if found := shutil.which("java", path=environment.get("PATH", os.defpath)):
        yield Path(found)
    for pattern in _USUAL:
        for place in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True):
            yield place / "bin" / "java"
