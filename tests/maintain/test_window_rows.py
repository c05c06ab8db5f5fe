"""What is kept of the rows of a window: what is read, and when they fall out."""

import pytest

from squallpy.compiler import to_program
from squallpy.logical.bind import compile_script
from squallpy.program.explain_text import definition

SCRIPT = "CREATE STREAM s (a INT, b INT, ts TIMESTAMP) USING csv OPTIONS (path 's') TIMESTAMP BY ts;"
END = "ADD_MICROS(TRUNC_TIME(ADD_MICROS(ts_2, -1), {0}), {0})"


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("SELECT a FROM s RANGE 5 SEC", "Sum_[a, ts](S(a, ts))"),
        ("SELECT a FROM s RANGE 4 SEC SLIDE 2 SEC", f"Sum_[a, ts](S(a, ts_2) ⋈ (ts := {END.format(2_000_000)}))"),
        ("SELECT a FROM s RANGE 6 SEC SLIDE 4 SEC", f"Sum_[a, ts](S(a, ts_2) ⋈ (ts := {END.format(2_000_000)}))"),
        ("SELECT a FROM s TUMBLE 1 SEC", "Sum_[a, ts](S(a, ts_2) ⋈ (ts := TRUNC_TIME(ts_2, 1000000)))"),
        ("SELECT a, ts FROM s TUMBLE 1 SEC", "Sum_[a, ts](S(a, ts))"),
        ("SELECT a FROM s ROWS 4 SLIDE 2", "Sum_[a, __arrival](S(a, __arrival))"),
        ("SELECT COUNT(*) FROM s ROWS 5", "Sum_[__arrival](S(__arrival))"),
    ],
)
def test_rows_that_fall_out_together_are_one_where_they_are_alike(query: str, kept: str) -> None:
    (bound,) = compile_script(f"{SCRIPT} {query};", "q.sql", lambda relation: ()).queries
    (aux,) = to_program(bound).lowered.auxiliary
    assert definition(aux.view) == kept


def test_whole_rows_are_kept_where_late_ones_are_told() -> None:
    (bound,) = compile_script(f"{SCRIPT} SELECT a FROM s TUMBLE 1 SEC;", "q.sql", lambda relation: ()).queries
    (aux,) = to_program(bound, report_late=True).lowered.auxiliary
    assert definition(aux.view) == "Sum_[a, b, ts](S(a, b, ts))"
