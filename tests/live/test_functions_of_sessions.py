"""Functions that a session declares: kept with its checkpoint, dropped when nothing reads them, of tables' names."""

import re
from pathlib import Path
from typing import Any

import pytest

import squallpy
from squallpy import Session, SquallError, call_function, count

DECLARED = """
CREATE FUNCTION initial(name VARCHAR) RETURNS VARCHAR LANGUAGE PYTHON AS $$ return name[0] if name else None $$;
CREATE FUNCTION zero(x INT) RETURNS INT RETURN x * 0;
CREATE FUNCTION afterwards(x INT) RETURNS INT RETURN zero(x) + 1;
CREATE MATERIALIZED VIEW v AS SELECT initial(name) AS i, SUM(afterwards(n)) AS s FROM people GROUP BY initial(name);
"""


def rows(s: Session, view: str) -> list[dict[str, Any]]:
    return sorted(s.view(view).to_pylist(), key=str)


def test_a_session_has_its_functions_again(tmp_path: Path) -> None:
    with squallpy.connect(checkpoint=str(tmp_path / "c")) as s:
        s.stream("people", {"name": "VARCHAR", "n": "INT"})
        s.sql(DECLARED)
        s.push("people", [{"name": "Ada", "n": 1}, {"name": "Alan", "n": 2}])
        s.step()
    with squallpy.connect(checkpoint=str(tmp_path / "c")) as s:
        s.push("people", [{"name": "Ada", "n": 1}], "-")
        s.push("people", [{"name": None, "n": 1}])
        s.step()
        assert rows(s, "v") == [{"i": "A", "s": 1}, {"i": None, "s": 1}]
        s.sql("CREATE MATERIALIZED VIEW w AS SELECT afterwards(CAST(s AS INT)) AS x FROM v")
        assert rows(s, "w") == [{"x": 1}, {"x": 1}]


REFUSED = {
    "DROP FUNCTION zero": "SQ2014 session:1:15: zero() cannot be dropped: afterwards() reads it",
    "DROP FUNCTION afterwards": "SQ2014 session:1:15: afterwards() cannot be dropped: v reads it",
    "CREATE OR REPLACE FUNCTION zero(x INT) RETURNS INT RETURN 0": "SQ2014 session:1:28: zero() cannot be replaced",
    "CREATE FUNCTION zero(x INT) RETURNS INT RETURN 0": 'SQ2007 session:1:17: "zero()" is already declared',
    "DROP FUNCTION zeroo": 'SQ2001 session:1:15: unknown function "zeroo()", did you mean "zero()"?',
    "DROP VIEW zero": 'SQ2001 session:1:11: unknown view "zero"',
}


@pytest.mark.parametrize("text", REFUSED)
def fault_what_is_read_stays(text: str) -> None:
    with squallpy.connect() as s:
        s.stream("people", {"name": "VARCHAR", "n": "INT"})
        s.sql(DECLARED)
        with pytest.raises(SquallError, match=re.escape(REFUSED[text])):
            s.sql(text)
        s.push("people", [{"name": "Ada", "n": 1}])
        s.step()
        assert rows(s, "v") == [{"i": "A", "s": 1}]


def test_functions_are_replaced_and_dropped() -> None:
    with squallpy.connect() as s:
        s.stream("people", {"name": "VARCHAR", "n": "INT"})
        s.sql("CREATE FUNCTION people(x INT) RETURNS INT RETURN x")  # a name that a stream has
        s.sql("CREATE OR REPLACE FUNCTION people(x INT) RETURNS INT RETURN x + 1")
        s.sql("CREATE FUNCTION IF NOT EXISTS people(x INT) RETURNS INT RETURN x + 2")
        s.sql("CREATE MATERIALIZED VIEW v AS SELECT people(n) AS x FROM people")
        s.push("people", [{"name": "Ada", "n": 1}])
        s.step()
        assert rows(s, "v") == [{"x": 2}]
        s.sql("DROP FUNCTION people CASCADE; DROP FUNCTION IF EXISTS people")
        with pytest.raises(SquallError, match=r'SQ2004 .*unknown function "people"'):
            s.sql("SELECT people(n) AS x FROM people")
        with pytest.raises(SquallError, match='unknown materialized view "v"'):
            s.view("v")


def test_a_function_of_python_is_declared_by_a_decorator() -> None:
    with squallpy.connect() as s:
        people = s.stream("people", {"name": "VARCHAR", "n": "INT"})

        @s.function("VARCHAR", name="VARCHAR", n="INT")
        def described(name, n):  # type: ignore[no-untyped-def]
            """A text with a $ in it."""
            from textwrap import shorten

            # a comment
            return None if name is None else shorten(f"{name} ${n}", 9)

        @s.function("INT", n="INT")
        def twice(n): return n and n * 2  # type: ignore[no-untyped-def]  # fmt: skip

        v = s.sql("SELECT described(name, twice(n)) AS d FROM people")
        w = people.group_by(t=lambda r: call_function("twice", r.n)).agg(c=count()).materialize("w")
        people.push([{"name": "Ada", "n": 1}, {"name": "Augusta Ada", "n": 1}, {"name": None, "n": None}])
        s.step()
        assert v is not None
        assert sorted(v.to_pylist(), key=str) == [{"d": "Ada $2"}, {"d": "[...]"}, {"d": None}]
        assert sorted(w.to_pylist(), key=str) == [{"t": 2, "c": 2}, {"t": None, "c": 1}]
        assert described("x", 1) == "x $1"  # type: ignore[no-untyped-call]


def fault_a_function_that_has_no_lines_or_other_parameters() -> None:
    with squallpy.connect() as s:
        with pytest.raises(SquallError, match="SQ7011 <lambda> is not written as a function, define it by def"):
            s.function("INT", n="INT")(lambda n: n)
        with pytest.raises(SquallError, match="SQ7011 len has other parameters than n"):
            s.function("INT", n="INT")(len)

        def outside(n):  # type: ignore[no-untyped-def]
            return re.sub("a", "b", n)

        with pytest.raises(SquallError, match=r"SQ1001 .*re is no parameter of outside, import or define it"):
            s.function("VARCHAR", n="VARCHAR")(outside)
