"""Matrices and their programs in a script: what they read as, and every mistake at its token."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, BOOLEAN, DOUBLE
from squallpy.logical.bind import Script, compile_script
from squallpy.logical.nodes import Project, Scan
from squallpy.maintain.matrix.script_programs import Programs

STREAMS = (
    "CREATE STREAM edges (src INT, dst BIGINT, w DOUBLE, s VARCHAR, b BOOLEAN) USING csv OPTIONS (path 'e'); "
    "CREATE TABLE fixed (i INT, j INT, v DECIMAL(8,2)) USING csv OPTIONS (path 'f');\n"
)
MATRICES = STREAMS + (
    "CREATE MATRIX A (n, n) FROM STREAM edges (src, dst, w); CREATE MATRIX B (n, 3) FROM TABLE fixed (i, j, v); "
    "CREATE MATRIX G (n, n) SYMMETRIC FROM STREAM edges (src, dst, b); "
    "CREATE MATRIX PROGRAM p AS $$ C := A * A; D := C * B $$; "
    "CREATE MATRIX PROGRAM q OVER boolean AS $$ R := G * G $$;\n"
)


def compiled(text: str) -> Script:
    return compile_script(text, "q.sql", lambda relation: (), Programs().outputs)


@pytest.mark.parametrize(
    ("name", "type"),
    [("A", DOUBLE), ("G", BOOLEAN), ("p.D", DOUBLE), ("P.c", DOUBLE), ("p.A", DOUBLE), ("q.R", BOOLEAN)],
)
def test_reads_as_cells(name: str, type: object) -> None:
    script = compiled(MATRICES + f"SELECT * FROM {name}")
    plan = script.queries[0].plan
    scan = plan.child if isinstance(plan, Project) else plan
    assert isinstance(scan, Scan)
    assert [(c.name, c.type, c.nullable) for c in scan.columns] == [
        ("i", BIGINT, False), ("j", BIGINT, False), ("value", type, False)
    ]  # fmt: skip
    assert scan.relation.name.lower() == name.lower() and scan.relation.primary_key == ("i", "j")


def test_alias() -> None:
    script = compiled(MATRICES + "SELECT D.i, x.value FROM p.D JOIN p.C x ON D.j = x.i WHERE x.j > 2")
    assert script.queries[0].names == ("i", "value")


def test_declared() -> None:
    script = compiled(MATRICES)
    assert [str(matrix) for matrix in script.matrices.values()] == [
        "A (n, n) FROM STREAM edges (src, dst, w)",
        "B (n, 3) FROM TABLE fixed (i, j, v)",
        "G (n, n) SYMMETRIC FROM STREAM edges (src, dst, b)",
    ]
    assert script.programs["p"].outputs == ("C", "D", "A", "B")


ERRORS = {
    "SELECT * FROM p.E": 'SQ2001 q.sql:3:17: the matrix program "p" has no output "E"',
    "SELECT * FROM pp.D": 'SQ2001 q.sql:3:15: unknown matrix program "pp", did you mean "p"?',
    "SELECT * FROM p": 'SQ2001 q.sql:3:15: "p" is a matrix program, read p.C or p.D or p.A or p.B',
    "SELECT x FROM p.D": 'SQ2003 q.sql:3:8: unknown column "x"',
    "CREATE MATRIX a (n, n) FROM STREAM edges (src, dst, w)": 'SQ2007 q.sql:3:15: "a" is already declared',
    "CREATE MATRIX Z (n, n) FROM STREAM edge (src, dst, w)": (
        'SQ2001 q.sql:3:36: unknown stream or table "edge", did you mean "edges"?'
    ),
    "CREATE MATRIX Z (n, n) FROM TABLE edges (src, dst, w)": 'SQ2005 q.sql:3:35: "edges" is a STREAM, write FROM',
    "CREATE MATRIX Z (n, n) FROM STREAM edges (src, dts, w)": (
        'SQ2003 q.sql:3:48: "edges" has no column "dts", did you mean "dst"?'
    ),
    "CREATE MATRIX Z (n, n) FROM STREAM edges (w, dst, w)": (
        'SQ2005 q.sql:3:43: an index of a matrix is an INT or BIGINT, "w" is DOUBLE'
    ),
    "CREATE MATRIX Z (n, n) FROM STREAM edges (src, dst, s)": (
        'SQ2005 q.sql:3:53: an entry of a matrix is a number or a BOOLEAN, "s" is VARCHAR'
    ),
    "CREATE MATRIX Z (n, n) FROM STREAM edges (src)": "SQ2005 q.sql:3:15: 1 columns of a matrix",
    "CREATE MATRIX Z (n, m) LOWER FROM STREAM edges (src, dst)": "SQ2011 q.sql:3:15: a matrix of n × m is not LOWER",
    "CREATE MATRIX Z (n, n) SHARES SYMMETRIC FROM STREAM edges (src, dst)": "SQ2011 q.sql:3:15: shares of rows are not",
    "CREATE MATRIX Z (n, n) SHARES FROM STREAM edges (src, dst, b)": 'SQ2005 q.sql:3:60: "b" is BOOLEAN, and has no',
    "CREATE MATRIX Z (n, n) SHARES FROM STREAM edges (src, dst); CREATE MATRIX PROGRAM y OVER boolean AS $$C := Z$$": (
        'SQ2005 q.sql:3:83: "Z" has SHARES, and the boolean semiring no fractions'
    ),
    "CREATE MATRIX Z (n, ) FROM STREAM edges (src, dst)": 'SQ1001 q.sql:3:21: unexpected ")", expected a name or',
    "CREATE MATRIX PROGRAM z OVER bool AS $$ Z := A $$": (
        'SQ2012 q.sql:3:30: unknown semiring "bool", did you mean "boolean"?'
    ),
    "CREATE MATRIX PROGRAM z OVER counting AS $$ Z := A * A $$": (
        'SQ2005 q.sql:3:23: the counting semiring has whole numbers, the entries of "A" are DOUBLE'
    ),
    "CREATE MATRIX PROGRAM z AS $$ Z := G $$": (
        'SQ2005 q.sql:3:23: the arithmetic semiring has numbers, the entries of "G" are BOOLEAN, write OVER boolean'
    ),
    "CREATE MATRIX PROGRAM z AS $$ Z := A * Q $$": 'SQ2012 q.sql:3:40: unknown matrix "Q"',
    "CREATE MATRIX PROGRAM z AS $$\n  Z := A * B;\n  Y := B * A $$": (
        "SQ2011 q.sql:5:8: cannot multiply B (n × 3) and A (n × n)"
    ),
    "CREATE MATRIX PROGRAM z AS $$ Z := A; z := A * A $$": 'SQ2007 q.sql:3:23: "Z" is named twice in "z"',
    "CREATE MATRIX PROGRAM z AS $$ $$": "SQ1001 q.sql:3:30: a matrix program without a statement",
    "CREATE MATRIX PROGRAM z AS A * A": 'SQ1001 q.sql:3:28: unexpected "A", expected a text between $$ and $$',
    "CREATE MATRIX PROGRAM z AS $$ Z := A * $$": "SQ1001 q.sql:3:39: the script ends too early, expected (",
    "SELECT * FROM s.edges.x": "SQ3001 q.sql:3:15: a catalog before a table's name is not supported yet",
}


@pytest.mark.parametrize("sql", ERRORS)
def test_errors(sql: str) -> None:
    with pytest.raises(SquallError) as raised:
        compiled(MATRICES + sql + ";")
    assert str(raised.value).startswith(ERRORS[sql]), raised.value


def test_program_without_matrices() -> None:
    with pytest.raises(SquallError, match=r'SQ2012 q.sql:2:23: "z" has no matrix to work on'):
        compiled(STREAMS + "CREATE MATRIX PROGRAM z AS $$ Z := eye(3) $$;")


def test_schema_without_programs() -> None:
    with pytest.raises(SquallError, match=r'SQ2001 q.sql:2:17: unknown table "x.edges", did you mean "edges"'):
        compiled(STREAMS + "SELECT * FROM x.edges;")
