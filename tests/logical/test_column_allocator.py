"""Names of columns that passes make."""

import pytest

from squallpy.logical.column_allocator import short_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a + b", "a + b"),
        (f"MAX_BY(s, {'a + ' * 30}b)", "MAX_BY"),
        (f"(((LPAD(a, 4, '0') || '-') || b) || {'c || ' * 20}d)", "LPAD"),
        (f"'{'…' * 80}'", f"'{'…' * 80}'"),
    ],
)
def test_a_column_of_a_long_expression_is_called_by_its_first_word(text: str, name: str) -> None:
    assert short_name(text) == name
