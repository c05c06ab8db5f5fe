"""CREATE FUNCTION: its formula is bound once, a call is the formula of its arguments, and mistakes have their place."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.logical.bind import compile_script
from squallpy.logical.query_identity import identity_text

STREAM = "CREATE STREAM r (a INT, b DECIMAL(10,2), s VARCHAR, d DATE) USING csv OPTIONS (path 'r');\n"
FUNCTIONS = """CREATE FUNCTION net(gross DOUBLE, rate DOUBLE) RETURNS DOUBLE RETURN gross / (1 + rate);
CREATE FUNCTION half(x DOUBLE) RETURNS DOUBLE RETURN net(x, 1);
CREATE FUNCTION cents(x DECIMAL(10,2)) RETURNS BIGINT RETURN CAST(x * 100 AS BIGINT);
CREATE FUNCTION late(d DATE) RETURNS BOOLEAN RETURN d > '2026-01-01';
"""
PYTHON = "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE PYTHON AS $$"

# a call → the formula that it is
CALLS = {
    "half(a)": "CAST(a AS DOUBLE) / (1 + 1e0)",
    "net(rate => 2, gross => b)": "CAST(b AS DOUBLE) / (1 + 2e0)",
    "NET(1, 2)": "1e0 / (1 + 2e0)",
    "cents(a)": "CAST(CAST(a AS DECIMAL(10,2)) * 100 AS BIGINT)",
    "late('2020-02-02')": "DATE '2020-02-02' > DATE '2026-01-01'",
    "SUM(half(b)) + half(COUNT(*))": "SUM(CAST(b AS DOUBLE) / (1 + 1e0)) + CAST(COUNT(*) AS DOUBLE) / (1 + 1e0)",
}

# text from line 2 on → code, line, column, part of the message
MISTAKES = {
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN y": ("SQ2003", 2, 45, 'unknown column "y", known: x'),
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN f(x)": ("SQ2004", 2, 45, 'unknown function "f"'),
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN x * 1.5": ("SQ2005", 2, 45, "f returns INT, this is DECIMAL(12,1)"),
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN SUM(x)": ("SQ2009", 2, 45, "SUM is an aggregate and cannot stand in"),
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN (SELECT MAX(a) FROM r)": ("SQ3001", 2, 46, "a subquery in a function"),
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN x, x": ("SQ1001", 2, 38, "a function returns one expression"),
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN x FROM r": ("SQ1001", 2, 38, "a function returns one expression"),
    "CREATE FUNCTION f(x INT) RETURNS INT RETURN": ("SQ1001", 2, 38, "a function returns one expression"),
    "CREATE FUNCTION f(x INT, X INT) RETURNS INT RETURN x": ("SQ2007", 2, 19, 'a parameter "x" is named twice'),
    "CREATE FUNCTION f(x INTT) RETURNS INT RETURN x": ("SQ2008", 2, 21, 'unknown type "INTT", did you mean "INT"?'),
    "CREATE FUNCTION f(x INT) RETURN x": ("SQ1001", 2, 26, 'unexpected "RETURN", expected RETURNS'),
    "CREATE FUNCTION abs(x INT) RETURNS INT RETURN x": ("SQ2007", 2, 17, "ABS is a word of SQL, take another name"),
    "CREATE FUNCTION cast(x INT) RETURNS INT RETURN x": ("SQ2007", 2, 17, "CAST is a word of SQL"),
    "CREATE FUNCTION sum(x INT) RETURNS INT RETURN x": ("SQ2007", 2, 17, "SUM is a word of SQL"),
    "CREATE FUNCTION half(x INT) RETURNS INT RETURN x": ("SQ2007", 2, 17, '"half()" is already declared at q.sql:1:'),
    "SELECT net(a) AS x FROM r": ("SQ2005", 2, 8, "net takes 2 arguments, not 1, net(gross DOUBLE, rate DOUBLE)"),
    "SELECT half(s) AS x FROM r": ("SQ2005", 2, 13, "x of half is DOUBLE, not VARCHAR, CAST it"),
    "SELECT cents(1e0) AS x FROM r": ("SQ2005", 2, 14, "x of cents is DECIMAL(10,2), not DOUBLE"),
    "SELECT late('soon') AS x FROM r": ("SQ2005", 2, 13, "'soon' is not a valid DATE"),
    "SELECT net(gross => 1, 2) AS x FROM r": ("SQ2005", 2, 24, "an argument without a name stands behind one"),
    "SELECT net(1, gross => 2) AS x FROM r": ("SQ2005", 2, 24, "gross of net is given twice"),
    "SELECT net(1, tax => 2) AS x FROM r": ("SQ2005", 2, 22, "net has no tax, net(gross DOUBLE, rate DOUBLE)"),
    "SELECT hal(a) AS x FROM r": ("SQ2004", 2, 8, 'unknown function "hal", did you mean "half"?'),
    "SELECT * FROM half(1)": ("SQ3001", 2, 15, "a table function is not supported yet"),
    f"{PYTHON} return x + $$": ("SQ1001", 2, 60, "this is not Python: invalid syntax"),
    f"{PYTHON}\n  y = x\n    z = 2\n  return y $$": ("SQ1001", 4, 5, "this is not Python: unexpected indent"),
    f"{PYTHON} x + 1 $$": ("SQ1001", 2, 60, "the lines of a function return a value"),
    f"{PYTHON} yield x $$": ("SQ1001", 2, 60, "a function returns one value, and does not yield"),
    f"{PYTHON}\n  y = x\n  return math.floor(y)\n$$": ("SQ1001", 4, 3, "math is no parameter of f, import or define"),
    "CREATE FUNCTION f(`a b` INT) RETURNS INT LANGUAGE PYTHON AS $$ return 1 $$": ("SQ2007", 2, 19, '"a b" is no name'),
    "CREATE FUNCTION f(`in` INT) RETURNS INT LANGUAGE PYTHON AS $$ return 1 $$": ("SQ2007", 2, 19, '"in" is no name'),
    "CREATE FUNCTION f(x INT) RETURNS INT LANGUAGE JAVA RETURN x": ("SQ1001", 2, 47, 'unexpected "JAVA", expected'),
    "DROP FUNCTION half": ("SQ3001", 2, 15, "DROP is for a session, not for a script"),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_the_formula_of_its_arguments(call: str) -> None:
    written = compile_script(f"{STREAM}{FUNCTIONS}SELECT {call} AS x FROM r", "q.sql", lambda _: ())
    meant = compile_script(f"{STREAM}SELECT {CALLS[call]} AS x FROM r", "q.sql", lambda _: ())
    assert identity_text(written.queries[0].plan) == identity_text(meant.queries[0].plan)


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(text: str) -> None:
    code, line, column, message = MISTAKES[text]
    before = f"{STREAM}{FUNCTIONS}".replace("\n", " ")
    with pytest.raises(SquallError) as raised:
        compile_script(f"{before}\n{text}", "q.sql", lambda _: ())
    assert str(raised.value).startswith(f"{code} q.sql:{line}:{column}: {message}")
