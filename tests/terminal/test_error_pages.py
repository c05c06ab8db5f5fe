"""Each code that can be raised has a page, whose example raises it: `squall explain SQ2003`."""

import re

import pytest

from squallpy.base.error_pages import read_pages
from squallpy.testing.error_pages import codes_raised
from tests.terminal.conftest import Ended, Squall


def test_each_code_that_is_raised_has_a_page() -> None:
    assert read_pages().keys() == codes_raised(), "write docs/errors/CODE.md, then `make plans` adds what it shows"


@pytest.mark.parametrize("code", read_pages())
def test_a_page_says_what_is_meant_shows_it_and_says_what_to_do(code: str) -> None:
    """That its consoles are current is part of the golden plans."""
    page = read_pages()[code]
    head, _, todo = page.partition("\n## What to do\n\n")
    assert re.match(rf"# {code}: .+\n\n\*.*exit status \d\.\*\n\n[A-Z`]", head) and todo
    shown = "".join(re.findall(r"^```console\n(.*?)^```$", head, re.MULTILINE | re.DOTALL))
    assert re.search(rf"^{code} ", shown, re.MULTILINE) and set(re.findall(r"^SQ\d{4}", shown, re.MULTILINE)) == {code}


@pytest.mark.parametrize("code", ["SQ2003", "sq2003"])
def test_a_page_is_printed(squall: Squall, code: str) -> None:
    assert squall("explain", code) == Ended(0, read_pages()["SQ2003"], "")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ("explain SQ2030", 'SQ7004 unknown error code "SQ2030", did you mean "SQ2013"?'),
        ("explain SQ9999", 'SQ7004 unknown error code "SQ9999", did you mean "SQ8009"?'),
        ("explain SQ2003 q.sql", 'SQ7004 unknown stage "SQ2003", known: '),
    ],
)
def golden_unknown_codes(squall: Squall, arguments: str, line: str) -> None:
    ended = squall(*arguments.split())
    assert (ended.status, ended.out) == (2, "") and ended.err.startswith(line), ended.err
