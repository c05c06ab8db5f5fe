"""The pages that show queries show what these print: each sql block, over the data that it names."""

import io
import re
import shlex
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

from squallpy.script_session import ScriptSession
from squallpy.terminal.cli import main

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"`squall ((?:run|explain) [^`]*)`")
_CUT = "…"


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a page, the script that it is about, and what it is said to print."""

    page: str
    command: str
    script: str
    text: str


def shown(page: str) -> list[Shown]:
    """Collect the blocks right after a command; a query without streams is over those of the block before."""
    text_of_page = (ROOT / page).read_text(encoding="utf-8")
    found, streams, script, end = [], "", "", 0
    for block in _BLOCK.finditer(text_of_page):
        before, end = text_of_page[end : block.start()], block.end()
        language, text = block.groups()
        commands = _COMMAND.findall(before)
        if language == "sql":
            parts = text.split("\n\n", 1)
            streams, script = (parts[0], text) if text.startswith("CREATE") else (streams, f"{streams}\n\n{text}")
        elif not language and commands and script:
            found.append(Shown(page, commands[-1], script, text))
    return found


PAGES = ("README.md", "docs/architecture.md", "docs/operations.md", "docs/from_spark.md")
SHOWN = [entry for page in PAGES for entry in shown(page)]
_CODE = re.compile(r"^    .*$|`[^`\n]*`", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#]*)#?([^)]*)\)")


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


def test_the_pages_have_queries_and_what_they_print() -> None:
    stages = {entry.command.split()[1] for entry in SHOWN if entry.command.startswith("explain")}
    assert stages == {"optimized", "calculus", "triggers", "physical", "stages"}
    assert [entry.command.split()[0] for entry in SHOWN if entry.page == "README.md"] == ["run"] * 3
    for page in PAGES:
        scripts = re.findall(
            r"^```sql\n(.*?)^```$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        assert scripts
        for script in scripts:
            assert any(entry.script.endswith(script) for entry in SHOWN if entry.page == page), script


_CONTEXT = {"sources.md", "sinks.md", "postgres.md"}  # their blocks run where their data sources are


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_other_scripts_compile(page: Path) -> None:
    """… those that are shown without what they print."""
    scripts = [text for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if language == "sql"]
    if page.name not in _CONTEXT and f"docs/{page.name}" not in PAGES:
        for script in (each for each in scripts if each.startswith("CREATE")):
            assert ScriptSession(page, text=script).script.relations


def test_the_view_that_others_read() -> None:
    """The query of docs/dbt_and_pipelines.md reads of the files that are shown what the view is."""
    text = (ROOT / "docs/dbt_and_pipelines.md").read_text(encoding="utf-8")
    files = re.findall(r"^\$ cat \S+\n((?:[^$`].*,.*\n)+)", text, re.MULTILINE)
    rows = [line.split(",") for file in files for line in file.splitlines()[1:]]
    (query,) = (text for language, text in _BLOCK.findall(text) if language == "sql" and text.startswith("SELECT"))
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE revenue (batch INT, op VARCHAR, customer INT, orders INT, total DECIMAL(10,2))"
        )
        connection.executemany("INSERT INTO revenue VALUES (?, ?, ?, ?, ?)", rows)
        found = connection.execute(query).fetchall()
    assert sorted(found) == [(7, 2, Decimal("15.00")), (8, 1, Decimal("20.00"))]


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 200


def anchors(page: Path) -> set[str]:
    """Name the headings of a page as links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = _CODE.sub("", _BLOCK.sub("", page.read_text(encoding="utf-8")))
    for place, anchor in _LINK.findall(text):
        if not re.match(r"\s*https?:", place):
            target = page.parent / place if place else page
            assert target.exists(), place
            assert not anchor or anchor in anchors(target), f"{place}#{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    pages = [ROOT / "README.md"]
    for page in pages:
        links = _LINK.findall(_CODE.sub("", _BLOCK.sub("", page.read_text(encoding="utf-8"))))
        targets = {(page.parent / place).resolve() for place, _ in links if place.endswith(".md")}
        pages += sorted(target for target in targets if target.exists() and target not in pages)
    assert {*ROOT.glob("docs/*.md")} <= {*pages}


@pytest.mark.parametrize("entry", SHOWN, ids=lambda entry: f"{entry.page}: {entry.command}")
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
