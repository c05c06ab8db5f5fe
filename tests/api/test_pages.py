"""The pages on Python show what their examples print."""

import contextlib
import io
import linecache
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [
    pytest.param(example[1], example[2], id=f"{page}:{text[: example.start()].count(chr(10)) + 1}")
    for page in ("python.md", "ibis.md", "flight_sql.md")
    for text in [(DOCS / page).read_text(encoding="utf-8")]
    for example in _EXAMPLE.finditer(text)
]


def test_each_page_has_examples() -> None:
    assert len(EXAMPLES) >= 3


@pytest.mark.parametrize("code, printed", EXAMPLES)
def test_an_example_prints_what_the_page_shows(code: str, printed: str) -> None:
    for package in ("ibis", "adbc_driver_flightsql"):
        if package in code:
            pytest.importorskip(package)
    linecache.cache["example.py"] = (len(code), None, code.splitlines(keepends=True), "example.py")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "example.py", "exec"), {})
    assert out.getvalue() == printed
