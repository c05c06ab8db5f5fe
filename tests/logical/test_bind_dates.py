"""Constant dates and what is added to them: types are checked before values are added."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.logical.bind import compile_script

STREAM = "CREATE STREAM r (k INT) USING csv OPTIONS (path 'r');\n"


@pytest.mark.parametrize("days", ["''", "'x'", "1.5", "TRUE", "DATE '2024-01-01'"])
@pytest.mark.parametrize("day", ["DATE '2024-02-28'", "TIMESTAMP '2024-02-28 10:00:00'"])
def test_days_of_another_type_are_refused(day: str, days: str) -> None:
    with pytest.raises(SquallError, match=r"SQ2005 q\.sql:2:8"):
        compile_script(f"{STREAM}SELECT DATE_ADD({day}, {days}) AS d FROM r;", "q.sql", lambda relation: ())
