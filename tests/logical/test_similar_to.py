"""SIMILAR TO: what patterns match, and which are refused."""

import pyarrow as pa
import pytest

from squallpy.base.errors import SquallError
from squallpy.logical.similar_to import MOST_NESTED, expression_of
from squallpy.runtime.evaluate.scalar.text import similar_to

MATCHES = [  # pattern, escape, what matches, what does not
    ("a(b|c)*%", "\\", ["a", "abx", "abcbc"], ["", "b"]),
    ("_[^0-9]{2,3}.", "\\", ["xab.", "xabc."], ["xa.", "xab", "x12."]),
    ("%(b|d)%", "\\", ["abc", "b", "a\nb"], ["ac"]),
    ("a+?", "\\", ["", "a", "aaa"], ["b"]),
    ("a{2}?", "\\", ["", "aa"], ["a"]),
    ("a{2,}", "\\", ["aa", "aaa"], ["a"]),
    ("a**", "\\", ["", "aaaa"], ["b"]),
    ("a|b|", "\\", ["a", "b", ""], ["ab"]),
    ("(a|)b", "\\", ["ab", "b"], ["aab"]),
    ("a.c$^", "\\", ["a.c$^"], ["abc", "abc$^"]),
    ("x\\%y", "\\", ["x%y"], ["xzy"]),
    ("x!_!!", "!", ["x_!"], ["xa!"]),
    ("x\\_", None, ["x\\a"], ["x_"]),
    ("[[:ALPHA:]_]+", "\\", ["ab_"], ["a1", ""]),
    ("[^[:digit:]]", "\\", ["a"], ["1"]),
    ("[a-c]", "\\", ["b"], ["d", "-"]),
    ("[a!-c]", "!", ["-", "a", "c"], ["b"]),
    ("[a-]", "\\", ["-", "a"], ["b"]),
    ("[^-a]", "\\", ["b"], ["a", "-"]),
    ("[%_|*+?{}()^]", "\\", list("%_|*+?{}()^"), ["a", "[", "]"]),
    ("[!]![]", "!", ["]", "["], ["a"]),
    ("😀+é", "\\", ["😀😀é"], ["é"]),
    ("", "\\", [""], ["a"]),
]
REFUSED = {
    "*a": "nothing before",
    "a|+": "nothing before",
    "(": "not closed",
    "a)": "nothing opens",
    "a]": "nothing opens",
    "a}": "nothing opens",
    "[a": "not closed",
    "[]": "no characters",
    "[[:foo:]]": "classes",
    "a{,2}": "{m}",
    "a{3,2}": "larger",
    "a{1001}": "more than 1000",
    "a\\": "escape",
    "(" * (MOST_NESTED + 1): "in each other",
}


@pytest.mark.parametrize(("pattern", "escape", "yes", "no"), MATCHES)
def test_patterns_match(pattern: str, escape: str | None, yes: list[str], no: list[str]) -> None:
    found = similar_to(pa.array(yes + no), pattern, escape)
    assert found.to_pylist() == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize("pattern", REFUSED)
def test_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(SquallError, match=REFUSED[pattern].replace("{", r"\{")):
        expression_of(pattern, "\\")
