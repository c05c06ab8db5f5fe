"""Keywords, functions, types and options in any case mean the same, and so do names: in every script that there is."""

import re
from pathlib import Path
from zlib import crc32

import pytest

from squallpy.base.errors import SquallError
from squallpy.catalog.relation import Field, Relation
from squallpy.logical.bind import compile_script
from squallpy.logical.explain_text import show
from squallpy.maintain.matrix.script_programs import Programs
from squallpy.runtime.sources import infer_fields
from squallpy.runtime.sources.registry import infer_foreign
from squallpy.testing.letter_case import CASES, names, recase, to_mixed_case
from squallpy.testing.step_tests import list_step_tests, read_steps

ROOT = Path(__file__).parents[2]
STEPS = list_step_tests().values()
SCRIPTS = sorted(path for folder in ("examples", "plans") for path in (ROOT / folder).rglob("*.sql"))
MANUALS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = [(path, text) for path in MANUALS for text in re.findall(r"^```sql\n(.*?)^```", path.read_text(), re.S | re.M)]
QUOTED = re.compile(r'"[^"]*"')  # what a message repeats as it was written


def outcome(script: str, folder: Path = ROOT) -> str:
    """What a script compiles to, or its error."""

    def infer(relation: Relation) -> tuple[Field, ...] | Relation:
        return infer_foreign(relation, folder) if relation.is_foreign else infer_fields(relation, folder)

    try:
        compiled = compile_script(script, "q.sql", infer, Programs().outputs)
    except SquallError as error:
        return f"{error.code} {error.span} {QUOTED.sub(lambda word: word[0].lower(), error.message)}"
    return "\n".join(f"{query.names} {show(query.plan)}" for query in compiled.queries)


def check(script: str, folder: Path = ROOT) -> None:
    expected = outcome(script, folder)
    assert recase(script, CASES["lower"]) != script
    try:
        spared = names(script)
    except SquallError:  # then names are not known, and its error says the same
        spared = None
    if spared is not None:
        for case in CASES.values():
            assert outcome(recase(script, case, spared), folder) == expected
    bodies = re.findall(r"\$\$.*?\$\$", script, re.S)  # where A and a are two matrices
    inside = frozenset(word.lower() for body in bodies for word in re.findall(r"\w+", body))
    assert in_lower_case(outcome(recase(script, to_mixed_case, inside), folder)) == in_lower_case(expected)


def in_lower_case(plan: str) -> str:
    """A plan whose columns may be called in another case than what they show: F(X, 2) := f(x, 2) is f(x, 2)."""
    return re.sub(r"((?:\([^()\n]*\)|[^\s()])+) := \1(?=[,\n]|$)", r"\1", plan.lower())


def is_long(path: Path) -> bool:
    """True for two files of three: only `make long` compiles them."""
    return crc32(path.stem.encode()) % 3 > 0


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.long] if is_long(path) else []) for path in STEPS]
)
def differential_steps_in_any_case(path: Path) -> None:
    check(read_steps(path).script)


@pytest.mark.parametrize("path", [pytest.param(path, id=f"{path.parent.name}-{path.stem}") for path in SCRIPTS])
def differential_examples_in_any_case(path: Path) -> None:
    check(path.read_text(), path.parent)


@pytest.mark.parametrize(("path", "text"), [pytest.param(*b, id=f"{b[0].stem}-{n}") for n, b in enumerate(BLOCKS)])
def differential_manuals_in_any_case(path: Path, text: str) -> None:
    check(text)
