"""Table functions over streams: what they declare, and every mistake at its token."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.logical.bind import Script, compile_script
from squallpy.maintain.matrix.script_programs import Programs

STREAMS = (
    "CREATE STREAM edges (src INT, dst BIGINT, w DOUBLE, s VARCHAR) USING csv OPTIONS (path 'e'); "
    "CREATE TABLE taken (y DOUBLE, x DOUBLE, intercept INT) USING csv OPTIONS (path 't'); "
    "CREATE TABLE obs (town VARCHAR, y DOUBLE, a INT, b DECIMAL(8,2)) USING csv OPTIONS (path 'o');\n"
)


def compiled(text: str) -> tuple[Script, Programs]:
    programs = Programs()
    return compile_script(STREAMS + text, "q.sql", lambda relation: (), programs.outputs), programs


CALLS = {
    "matrix_power(TABLE(edges), 4)": (
        ["edges_cells (edges_n, edges_n) FROM STREAM edges (src, dst, w)"],
        "R := iterate[3](edges_cells)(power => edges_cells * power)", ("i", "j", "value"),
    ),
    "Reachability(table(SELECT dst, src FROM edges), 2) AS r": (
        ["edges_dst_src_cells (edges_dst_src_n, edges_dst_src_n) FROM STREAM edges (dst, src)"],
        "R := iterate[2](eye(edges_dst_src_n))(acc => edges_dst_src_cells * acc + eye(edges_dst_src_n))", ("i", "j"),
    ),
    "ols(TABLE(obs), 'Y')": (
        [
            "ols_obs_y_squares (2, 2) SYMMETRIC FROM TABLE obs ([a, b] * [a, b])",
            "ols_obs_y_products (2, 1) FROM TABLE obs ([a, b] * [y])",
        ],
        "S := inv(ols_obs_y_squares); R := S * ols_obs_y_products", ("feature", "coefficient"),
    ),
    "ols(TABLE(SELECT a, y FROM obs), 'y', intercept => TRUE) o": (
        [
            "ols_obs_y_1_a_squares (2, 2) SYMMETRIC FROM TABLE obs ([1, a] * [1, a])",
            "ols_obs_y_1_a_products (2, 1) FROM TABLE obs ([1, a] * [y])",
        ],
        "S := inv(ols_obs_y_1_a_squares); R := S * ols_obs_y_1_a_products", ("feature", "coefficient"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_what_is_declared(call: str) -> None:
    matrices, text, names = CALLS[call]
    script, programs = compiled(f"SELECT * FROM {call}")
    assert [str(matrix) for matrix in script.matrices.values()] == matrices
    (program,) = programs.programs.values()
    assert "; ".join(map(str, program.statements)) == text
    assert script.queries[0].names == names


def test_the_same_call_is_declared_once() -> None:
    call = "matrix_power(TABLE(edges), 2)"
    script, programs = compiled(
        f"CREATE VIEW v AS SELECT * FROM {call}; SELECT v.i FROM v JOIN {call} AS w ON v.i = w.j"
    )
    assert len(script.matrices) == len(programs.programs) == 1


@pytest.mark.parametrize(
    "own",
    [
        "CREATE STREAM EDGES_cells (i INT, j INT) USING csv OPTIONS (path 'c')",
        "CREATE MATRIX edges_cells (n, n) FROM STREAM edges (src, dst, w)",
        "CREATE MATRIX a (n, n) FROM STREAM edges (src, dst); "
        "CREATE MATRIX PROGRAM matrix_power_edges_2 AS $$ R := a $$",
    ],
)
def test_what_has_the_name_of_what_a_call_declares_is_not_taken_for_it(own: str) -> None:
    with pytest.raises(SquallError, match=r"SQ2007 .* is already declared at q\.sql:2:"):
        compiled(f"{own};\nSELECT * FROM matrix_power(TABLE(edges), 2)")


@pytest.mark.parametrize("stream", ["`e f`", "`1r`", '`a"b`', "größe", "`😀`", "`x.y`"])
def test_names_that_need_quotes(stream: str) -> None:
    declared = f"CREATE STREAM {stream} (`s t` INT, `1\"` INT, `€` DOUBLE) USING csv OPTIONS (path 'e.csv');\n"
    for call in (f"pagerank(TABLE({stream}))", f"ols(TABLE(SELECT `s t`, `€` FROM {stream}), '€', TRUE)"):
        assert compiled(f"{declared}SELECT * FROM {call}")[0].queries


ERRORS = {
    "matrix_power(TABLE(edge), 2)": 'SQ2001 q.sql:2:15: unknown stream or table "edge", did you mean "edges"?',
    "matrix_power(edges, 2)": "SQ2005 q.sql:2:15: matrix_power reads columns of one stream or table, write TABLE(name)",
    "reachability(TABLE(SELECT src, dst FROM edges RANGE 5 MIN))": (
        "SQ2005 q.sql:2:15: reachability reads a stream as it is, without a window, write TABLE(name)"
    ),
    "matrix_power(TABLE(SELECT src FROM edges WHERE w > 1), 2)": "SQ2005 q.sql:2:15: matrix_power reads columns of one",
    "matrix_power(TABLE(SELECT src, dest FROM edges), 2)": 'SQ2003 q.sql:2:15: "edges" has no column "dest"',
    "matrix_power(TABLE(SELECT src FROM edges), 2)": "SQ2005 q.sql:2:15: matrix_power reads edges: from, to",
    "matrix_power(TABLE(SELECT src, s FROM edges), 2)": "SQ2005 q.sql:2:15: an index of a matrix is an INT or BIGINT",
    "matrix_power(TABLE(edges))": "SQ2012 q.sql:2:15: the power is missing, it is a number from 0 to 10000",
    "reachability(TABLE(edges), -1)": "SQ2012 q.sql:2:15: the number of hops is -1, it is a number",
    "ols(TABLE(obs), 'z')": 'SQ2003 q.sql:2:15: "obs" has no column "z" of numbers',
    "ols(TABLE(SELECT y, town FROM obs), 'y')": 'SQ2002 q.sql:2:15: ols is of numbers, "town" is VARCHAR, leave',
    "ols(TABLE(SELECT y FROM obs), 'y')": 'SQ2005 q.sql:2:15: "obs" has no numbers but "y"',
    "pagerank(TABLE(edges), damping => 2)": "SQ2012 q.sql:2:15: a damping of 2, it is a number from 0 to 1",
    "pagerank(TABLE(edges), -0.5)": "SQ2012 q.sql:2:15: a damping of -0.5, it is a number from 0 to 1",
    "pagerank(TABLE(edges), 0.5, -1)": "SQ2012 q.sql:2:15: the number of steps is -1, it is a number from 0",
    "pagerank(TABLE(SELECT src, s FROM edges))": "SQ2005 q.sql:2:15: an index of a matrix is an INT or BIGINT",
    "matrix_power(TABLE(edges), 3, 4)": "SQ2005 q.sql:2:45: matrix_power has too many arguments",
    "reachability(TABLE(edges), 3, hops => 4)": 'SQ2005 q.sql:2:53: reachability has no argument "hops", known: steps',
    "shortest_paths(TABLE(edges), 3, steps => 4)": 'SQ2007 q.sql:2:56: shortest_paths has the argument "steps" twice',
    "pagerank(TABLE(edges), dampin => 0.8)": 'SQ2005 q.sql:2:48: pagerank has no argument "dampin", did you mean "dam',
    "pagerank(TABLE(edges), 0.9, 3, src)": "SQ2005 q.sql:2:46: pagerank has too many arguments",
    "ols(TABLE(taken), 'y', TRUE)": 'SQ2007 q.sql:2:15: ols would have two features "intercept", rename the column',
    "ols(TABLE(obs))": "SQ2003 q.sql:2:15: ols has no label, write ols(TABLE(…), 'b')",
    "ols(TABLE(obs), y)": "SQ2003 q.sql:2:31: the label y is no name of a column, write ols(TABLE(…), 'b')",
    "ols(TABLE(obs), 'y', intercept => 1)": "SQ2012 q.sql:2:49: the intercept is 1, write TRUE or FALSE",
    "ols(TABLE(obs), 'y', label => 'y')": 'SQ2007 q.sql:2:45: ols has the argument "label" twice, give it once',
}


@pytest.mark.parametrize("call", ERRORS)
def test_mistakes(call: str) -> None:
    with pytest.raises(SquallError) as caught:
        compiled(f"SELECT * FROM {call}")
    assert str(caught.value).startswith(ERRORS[call])
