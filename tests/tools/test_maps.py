"""Maps of the code: a room whose docstring lists its modules lists all, and docs/architecture.md has every room."""

import ast
import re
from pathlib import Path

import pytest

import squallpy

PACKAGE = Path(squallpy.__file__).parent
KERNELS = PACKAGE / "runtime/kernels"  # NB: its docstring changed, all kernels are stale: its list may be behind
ROOMS = sorted({path.parent for path in PACKAGE.rglob("__init__.py")} - {KERNELS})
FEW = 3  # modules that a docstring may name by the way


def modules(room: Path) -> set[str]:
    files = {path.stem for path in room.glob("*.py")} - {"__init__", "__main__"}
    return files | {path.parent.name for path in room.glob("*/__init__.py")}


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(room.relative_to(PACKAGE)))
def test_a_list_of_modules_is_whole(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    named = modules(room) & {*re.findall(r"\w+", text)}
    lines = [name for name in named if re.search(rf"^ *{name} {{2,}}|`{name}`", text, re.MULTILINE)]
    assert len(lines) < FEW or named == modules(room)


@pytest.mark.parametrize("room", ["", "runtime"])
def test_the_architecture_has_every_room(room: str) -> None:
    text = (PACKAGE.parent / "docs/architecture.md").read_text(encoding="utf-8")
    rooms = {f"{path.parent.name}/" for path in (PACKAGE / room).glob("*/__init__.py")}
    files = {path.name for path in (PACKAGE / room).glob("*.py")} - {"__init__.py"}
    missing = {name for name in rooms | files if name not in text}
    assert not missing
