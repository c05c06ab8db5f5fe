"""What README.md shows is what its queries print: each sql block, over the data that it names."""

import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from squallpy.terminal.cli import main

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"`squall ((?:run|explain) [^`]*)`")
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of the README, the script that it is about, and what it is said to print."""

    command: str
    script: str
    text: str


def shown(page: str) -> list[Shown]:
    """The blocks right after a command; a query without streams is over those of the block before."""
    found, streams, script, end = [], "", "", 0
    for block in _BLOCK.finditer(page):
        before, end = page[end : block.start()], block.end()
        language, text = block.groups()
        commands = _COMMAND.findall(before)
        if language == "sql":
            parts = text.split("\n\n", 1)
            streams, script = (parts[0], text) if text.startswith("CREATE") else (streams, f"{streams}\n\n{text}")
        elif not language and commands and script:
            found.append(Shown(commands[-1], script, text))
    return found


README = (ROOT / "README.md").read_text(encoding="utf-8")
SHOWN = shown(README)


def is_part(text: str, whole: str) -> bool:
    """True if the pieces of a text between its lines of … come in that order, and without them it is the whole."""
    lines, at = whole.splitlines(), 0
    pieces = re.split(rf"^ *{_CUT}\n", text, flags=re.MULTILINE)
    for number, piece in enumerate(pieces):
        wanted = piece.splitlines()
        starts = range(at, len(lines) - len(wanted) + 1) if number else [0]
        found = next((start for start in starts if lines[start : start + len(wanted)] == wanted), None)
        if found is None:
            return False
        at = found + len(wanted)
    return at == len(lines) or (len(pieces) > 1 and not pieces[-1])


def test_the_readme_has_queries_and_what_they_print() -> None:
    commands = {entry.command.split()[0] for entry in SHOWN}
    stages = {entry.command.split()[1] for entry in SHOWN if entry.command.startswith("explain")}
    assert commands == {"run", "explain"} and len(SHOWN) >= 9
    assert stages == {"optimized", "calculus", "triggers", "physical", "stages"}
    scripts = set(re.findall(r"^```sql\n(.*?)^```$", README, re.MULTILINE | re.DOTALL))
    assert all(any(entry.script.endswith(script) for entry in SHOWN) for script in scripts)


@pytest.mark.parametrize("entry", SHOWN, ids=lambda entry: entry.command)
def golden_readme(entry: Shown, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(entry.script.encode())))
    arguments = [argument for argument in shlex.split(entry.command) if argument != "query.sql"]
    assert main([*arguments, "-"]) == 0
    printed = capfd.readouterr().out
    assert is_part(entry.text, printed), printed


def test_a_part_is_in_order_and_a_whole_is_whole() -> None:
    whole = "a\nb\nc\nd\n"
    assert is_part(whole, whole) and is_part("a\n…\nc\nd\n", whole) and is_part("…\nb\n  …\nd\n", whole)
    assert is_part("a\n…\n", whole) and is_part("…\nc\n…\n", whole)
    assert not is_part("b\n", whole) and not is_part("a\nb\n", whole) and not is_part("…\nc\n", whole)
    assert not is_part("a\nc\n…\n", whole) and not is_part("…\nc\n…\nb\n…\n", whole) and not is_part("", whole)
