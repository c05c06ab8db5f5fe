"""What a user is told of a script that runs: DECIMAL without digits, where it rounds off a fraction; query hints."""

import pytest

from squallpy.logical.bind import compile_script

STREAM = (
    "CREATE STREAM r (i INT, f DOUBLE, c DECIMAL(12,2), w DECIMAL(20,0), s VARCHAR) USING csv OPTIONS (path 'r');\n"
)


def notices(query: str) -> list[tuple[int, int]]:
    """The lines and columns that are told."""
    return [(n.span.line, n.span.column) for n in compile_script(STREAM + query, "q.sql", lambda _: ()).notices]


@pytest.mark.parametrize(
    "value",
    [
        "CAST(f AS DECIMAL)",
        "c::NUMERIC",
        "cast(s as decimal)",
        "TRY_CAST(f AS DEC)",
        "DECIMAL(c)",
        "CAST(1.5 AS DECIMAL)",
    ],
)
def fault_lost_fraction(value: str) -> None:
    assert len(notices(f"SELECT {value} AS v FROM r;")) == 1


@pytest.mark.parametrize(
    "value",
    [
        "CAST(f AS DECIMAL(18,2))",
        "CAST(i AS DECIMAL)",
        "w::NUMERIC",
        "CAST(f AS INT)",
        "CAST('12' AS DECIMAL)",
        "1.0::DEC",
    ],
)
def fault_nothing_lost(value: str) -> None:
    assert notices(f"SELECT {value} AS v FROM r;") == []


def fault_told_once() -> None:
    """A view that two queries read is told at its own place, once."""
    text = "CREATE VIEW v AS SELECT CAST(f AS DECIMAL) AS d FROM r;\nSELECT d FROM v;\nSELECT SUM(d) AS s FROM v;"
    assert notices(text) == [(2, 30)]


def fault_query_hint() -> None:
    assert notices("SELECT /*+ BROADCAST(r), COALESCE(3) */ i FROM r;") == [(2, 8)]
    assert notices("SELECT i FROM (SELECT /*+ MAPJOIN(r) */ i FROM r) x;") == [(2, 23)]
    assert notices("SELECT /* + */ i FROM r;") == []
