"""The check of docstrings: what it refuses and what it takes."""

from pathlib import Path

import pytest

from tools import prose


def write_package(tmp_path: Path, source: str) -> Path:
    package = tmp_path / "package"
    package.mkdir()
    (package / "room.py").write_text(source)
    return package


def read(tmp_path: Path, source: str) -> list[prose.Docstring]:
    package = write_package(tmp_path, source)
    return list(prose.docstrings(package / "room.py", package))


def faults(tmp_path: Path, source: str) -> list[str]:
    return [f"{docstring.name}: {fault}" for docstring in read(tmp_path, source) for fault in docstring.faults()]


@pytest.mark.parametrize(
    "text",
    [
        "Push a filter below a projection: σ(π(x)) → π(σ(x)).",
        "True if a row is visible.",
        "Split a plan's joins.  What is left over is a filter, and may be as long as it has to be, for it is no first\n"
        "    sentence: it explains, and takes: colons.",
        "Read `a: b` and 'c: d': text.",
    ],
)
def test_a_function_begins_with_a_verb(tmp_path: Path, text: str) -> None:
    assert not faults(tmp_path, f'def split(x):\n    """{text}"""\n')


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("The joins of a plan.", '"The" is no verb'),
        ("Splits a plan.", '"Splits" is no verb'),
        ("split a plan.", '"split" is no verb'),
        ("True of a row.", '"True" is no verb'),
        ("What a plan joins.", '"What" is no verb'),
        ("Test whether a plan has joins?", "it is a question"),
        ("Split a plan: by joins: all of them.", "more than 1 colon"),
        ("Split " + "very " * 25 + "much.", "has 27 words"),
    ],
)
def test_a_function_is_refused_by_its_fault(tmp_path: Path, text: str, fault: str) -> None:
    (found,) = faults(tmp_path, f'def split(x):\n    """{text}"""\n')
    assert found.startswith("package.room.split: ") and fault in found


@pytest.mark.parametrize("head", ["What", "Of", "Those", "The same", "How", "Where", "It is", "Split"])
def test_a_class_and_a_property_are_noun_phrases(tmp_path: Path, head: str) -> None:
    source = '''"""{0} thing."""
class Plan:
    """{0} plan."""
    @property
    def keys(self):
        """{0} keys."""
    @functools.cached_property
    def columns(self):
        """{0} columns."""
    def lower(self):
        """Lower it to the calculus."""
LIMIT = 3
"""{0} rows."""
'''
    names = [line.split(":")[0] for line in faults(tmp_path, source.format(head))]
    assert names == [f"package.room{name}" for name in ("", ".Plan", ".Plan.keys", ".Plan.columns", ".LIMIT")]


def test_noun_phrases_pass_and_places_are_named(tmp_path: Path) -> None:
    source = '''"""Order of all passes."""

class Join:
    """Rewrite of two inputs; `left` comes first."""

    def is_outer(self):
        """Is it?"""
'''
    *fine, wrong = read(tmp_path, source)
    assert not [fault for docstring in fine for fault in docstring.faults()]
    assert (wrong.name, wrong.line) == ("package.room.Join.is_outer", 7)


def test_problems_are_printed_with_their_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    package = write_package(tmp_path, 'def a():\n    """The a."""\n\n\ndef b():\n    """Make b."""\n')
    monkeypatch.setattr(prose, "PACKAGE", package)
    assert prose.main() == 1
    (line,) = capsys.readouterr().out.splitlines()
    assert 'room.py:2: package.room.a: "The" is no verb' in line


def test_the_verbs_are_in_order_each_once() -> None:
    words = [word.rstrip("*") for word in prose._WORDS]
    assert words == sorted(set(words)) and {"what", "of", "how"} <= prose.NO_HEADS
