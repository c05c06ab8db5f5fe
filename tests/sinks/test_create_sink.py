"""CREATE SINK: its modes, its mistakes, and --out as its short form."""

import gzip
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

from squallpy.base.errors import SquallError
from squallpy.script_session import ScriptSession
from tests.sinks.conftest import QUERY, STREAM, Run, contents, manifest

CHANGES = {
    "batch-000000.csv": "batch,op,zip,n,s\n0,+,a,2,3\n",
    "batch-000001.csv": "batch,op,zip,n,s\n1,+,b,1,3\n1,+,c,1,4\n",
    "batch-000002.csv": "batch,op,zip,n,s\n2,-,b,1,3\n2,-,a,2,3\n2,+,b,2,8\n2,+,a,3,9\n",
    "batch-000003.csv": "batch,op,zip,n,s\n3,+,d,1,7\n",
}


def test_changes_are_a_file_for_each_batch(room: Path, run: Run) -> None:
    assert run(f"CREATE SINK o USING csv OPTIONS (path 'out/', mode 'changes') AS {QUERY};") == ""
    assert contents(room / "out") == CHANGES
    assert manifest(room / "out") == {"format": "csv", "mode": "changes", "batches": 4, "shown": 4, "version": 1}


def test_out_is_the_short_form(room: Path, run: Run) -> None:
    assert run(f"{QUERY};", "--out", "out", "--mode", "changes") == ""
    assert contents(room / "out") == CHANGES
    assert run(f"{QUERY};", "--out", "r.csv") == ""
    assert (room / "r.csv").read_text() == "zip,n,s\na,3,9\nb,2,8\nc,1,4\nd,1,7\n"


def test_final_is_one_file_and_what_a_bounded_query_writes(room: Path, run: Run) -> None:
    run(f"CREATE SINK o USING csv OPTIONS (path 'deep/r.csv.gz') AS {QUERY};")
    assert gzip.decompress((room / "deep/r.csv.gz").read_bytes()) == b"zip,n,s\na,3,9\nb,2,8\nc,1,4\nd,1,7\n"
    run(f"CREATE SINK o USING parquet OPTIONS (path 'r', mode 'final', compression 'zstd') AS {QUERY};")
    assert pq.read_table(room / "r").num_rows == 4
    assert pq.ParquetFile(room / "r").metadata.row_group(0).column(0).compression == "ZSTD"


def test_upsert_has_one_row_for_each_key(room: Path, run: Run) -> None:
    run(f"CREATE SINK o USING json OPTIONS (path 'out', mode 'upsert') AS {QUERY} HAVING COUNT(*) <> 2;")
    assert "".join(contents(room / "out").values()) == (
        '{"batch": 1, "op": "+", "zip": "b", "n": 1, "s": 3}\n'
        '{"batch": 1, "op": "+", "zip": "c", "n": 1, "s": 4}\n'
        '{"batch": 2, "op": "-", "zip": "b", "n": 1, "s": 3}\n'
        '{"batch": 2, "op": "+", "zip": "a", "n": 3, "s": 9}\n'
        '{"batch": 3, "op": "+", "zip": "d", "n": 1, "s": 7}\n'
    )
    run(f"CREATE SINK o USING csv OPTIONS (path 'out', mode 'upsert', key 'ZIP') AS SELECT zip, s FROM ({QUERY});")
    assert contents(room / "out")["batch-000002.csv"] == "batch,op,zip,s\n2,u,b,8\n2,u,a,9\n"


def test_a_key_of_null_and_of_several_columns(room: Path, run: Run) -> None:
    (room / "f.csv").write_text("1,,1\n2,,1\n3,,2\n4,,1\n")
    query = "SELECT COUNT(*) AS n, v, zip FROM f GROUP BY zip, v"
    run(f"CREATE SINK o USING csv OPTIONS (path 'out', mode 'upsert') AS {query};")
    assert contents(room / "out") == {
        "batch-000000.csv": "batch,op,n,v,zip\n0,+,2,1,\n",
        "batch-000001.csv": "batch,op,n,v,zip\n1,+,1,2,\n1,u,3,1,\n",
    }


def test_a_key_that_is_none_is_told(run: Run) -> None:
    script = "CREATE SINK o USING csv OPTIONS (path 'out', mode 'upsert', key 'zip') AS SELECT zip, v FROM f;"
    said = run(script, status=2)
    assert said.startswith("SQ4007 batch 0 has two rows of the key zip = a, which mode 'upsert' writes as one"), said


def test_append_has_the_rows_themselves(room: Path, run: Run) -> None:
    run("CREATE SINK o USING csv OPTIONS (path 'out', mode 'append') AS SELECT DISTINCT zip FROM f WHERE v > 2;")
    assert "".join(contents(room / "out").values()) == "zip\nzip\nb\nc\nzip\na\nzip\nd\n"


def test_several_sinks_views_and_a_select(room: Path, run: Run) -> None:
    script = f"""
        CREATE VIEW w AS {QUERY};
        CREATE SINK `Größe x` USING CSV OPTIONS ('PATH' 'a', Mode 'CHANGES') AS SELECT * FROM w;
        SELECT COUNT(*) AS n FROM w;
        CREATE SINK b USING json OPTIONS (path 'b.json') AS SELECT zip FROM w WHERE n > 2;
    """
    assert run(script) == "n\n4\n"
    assert contents(room / "a") == CHANGES and (room / "b.json").read_text() == '{"zip": "a"}\n'
    assert run(script, "--out", "c.csv") == "" and (room / "c.csv").read_text() == "n\n4\n"


@pytest.mark.parametrize(("compression", "suffix"), [("gzip", ".gz"), ("bz2", ".bz2"), ("zstd", ".zst"), ("none", "")])
@pytest.mark.parametrize("format", ["csv", "json"])
def oracle_compressed_and_compacted_files(compression: str, suffix: str, format: str, room: Path, run: Run) -> None:
    options = f"path 'out', mode 'changes', compression '{compression}', compact '3'"
    run(f"CREATE SINK o USING {format} OPTIONS ({options}) AS {QUERY};")
    names = [f"batch-000000-000002.{format}{suffix}", f"batch-000003-000003.{format}{suffix}"]
    assert sorted(path.name for path in (room / "out").glob("batch-*")) == names
    assert not list((room / "out/_waiting").iterdir())
    if compression == "bz2":  # which DuckDB does not read
        return
    found = duckdb.sql(f"""
        SELECT zip, SUM(CASE op WHEN '+' THEN n ELSE -n END)::INT FROM read_{format}_auto('{room}/out/*.{format}*')
        GROUP BY zip ORDER BY zip
    """)
    assert found.fetchall() == [("a", 3), ("b", 2), ("c", 1), ("d", 1)]


MISTAKES = [
    ("CREATE SINK o USING cvs OPTIONS (path 'o') AS SELECT v FROM f",
     'SQ7002 q.sql:2:21: unknown format of a sink "cvs", did you mean "csv"?'),
    ('CREATE SINK o USING csv AS SELECT v FROM f',
     'SQ7002 q.sql:2:13: sink "o" has no path, write OPTIONS (path \'...\')'),
    ("CREATE SINK o USING csv OPTIONS (path '') AS SELECT v FROM f",
     'SQ7002 q.sql:2:34: option "path" is empty, a folder'),
    ("CREATE SINK o USING csv OPTIONS (paht 'o') AS SELECT v FROM f",
     'SQ7002 q.sql:2:34: unknown option "paht", did you mean "path"?'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', PATH 'p') AS SELECT v FROM f",
     'SQ7002 q.sql:2:44: option "PATH" is given twice'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', mode 'change') AS SELECT v FROM f",
     'SQ7002 q.sql:2:44: option "mode" cannot be "change", did you mean "changes"?'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', compression 'gz') AS SELECT v FROM f",
     'SQ7002 q.sql:2:44: option "compression" cannot be "gz", did you mean "gzip"?'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', compact '1') AS SELECT v FROM f",
     'SQ7002 q.sql:2:44: option "compact" cannot be "1", a number of at least 2'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', mode 'final', compact '9') AS SELECT v FROM f",
     'SQ7002 q.sql:2:58: option "compact" is for files of batches, remove it'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', key 'v') AS SELECT v FROM f",
     'SQ7002 q.sql:2:44: option "key" is for mode \'upsert\', remove it'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', mode 'upsert', key 'w') AS SELECT v FROM f",
     'SQ2003 q.sql:2:59: the query has no column "w", known: v'),
    ("CREATE SINK o USING csv OPTIONS (path 'o', mode 'upsert') AS SELECT v FROM f",
     "SQ3001 q.sql:2:44: mode 'upsert' needs columns that tell the rows apart, and the query selects none, select the"),
    ("CREATE SINK o USING csv OPTIONS (path 'o', mode 'upsert') AS SELECT COUNT(*) AS n FROM f GROUP BY zip",
     "SQ3001 q.sql:2:44: mode 'upsert' needs columns"),
    ("CREATE SINK o USING csv OPTIONS (path 'o', mode 'append') AS SELECT zip, COUNT(*) AS n FROM f GROUP BY zip",
     "SQ3001 q.sql:2:44: mode 'append' only adds rows, and COUNT(*) … GROUP BY zip changes rows that it "
     "has given, write mode 'changes' or 'upsert'"),
    ("CREATE SINK o USING csv OPTIONS (path 'o', mode 'changes') AS SELECT v AS OP FROM f",
     'SQ2007 q.sql:2:44: "OP" is a column that mode \'changes\' adds, rename it in the query: … AS …'),
    ("CREATE SINK F USING csv OPTIONS (path 'o') AS SELECT v FROM f",
     'SQ2007 q.sql:2:13: "F" is already declared at q.sql:1:15'),
    ("CREATE SINK o USING csv OPTIONS (path 'o') AS SELECT v FROM f; CREATE VIEW O AS SELECT v FROM f",
     'SQ2007 q.sql:2:76: "O" is already declared at q.sql:2:13'),
    ("CREATE SINK o USING csv OPTIONS (path 'o') AS SELECT v FROM f; SELECT v FROM o",
     'SQ2001 q.sql:2:78: "o" is a sink, a stream of its own can read what it writes'),
    ("CREATE SINK o USING csv OPTIONS (path 'o') AS SELECT v FROM o",
     'SQ2001 q.sql:2:61: unknown table "o"'),
    ("CREATE SINK o USING csv OPTIONS (path 'o')",
     'SQ1001 q.sql:2:43: unexpected ";", expected AS'),
    ('CREATE SINK o AS SELECT v FROM f',
     'SQ1001 q.sql:2:15: unexpected "AS", expected USING'),
    ("CREATE SINK USING csv OPTIONS (path 'o') AS SELECT v FROM f",
     'SQ1001 q.sql:2:'),
    ("CREATE SINK 'o' USING csv OPTIONS (path 'o') AS SELECT v FROM f",
     'SQ1001 q.sql:2:13: '),
]  # fmt: skip


@pytest.mark.parametrize(("script", "message"), MISTAKES)
def test_mistakes(script: str, message: str, room: Path) -> None:
    with pytest.raises(SquallError) as caught:
        _ = ScriptSession(room / "q.sql", text=STREAM + script + ";").script
    said = str(caught.value).replace(str(room / "q.sql"), "q.sql")
    assert said.startswith(message) and caught.value.caret(), said


@pytest.mark.parametrize(
    ("path", "names"), [("f.csv", "f"), ("./deep/../f.csv", "f"), ("p/in/out", "g"), ("glob", "h")]
)
def fault_a_path_that_the_script_reads_is_refused(path: str, names: str, room: Path, run: Run) -> None:
    for folder in ("p/in", "glob", "sub"):
        (room / folder).mkdir(parents=True)
        (room / folder / "1.csv").write_text("1\n")
    (room / "sub" / "f.csv").write_text("1\n")
    more = """
        CREATE STREAM g (id BIGINT) USING csv OPTIONS (path 'p');
        CREATE STREAM h (id BIGINT) USING csv OPTIONS (path 'glob/*.csv');
        CREATE STREAM i (id BIGINT) USING csv OPTIONS (path 'sub/[f]*.csv');
    """
    said = run(f"{more}CREATE SINK o USING csv OPTIONS (path '{path}', mode 'changes') AS SELECT v FROM f;", status=2)
    assert said.startswith("SQ7005 q.sql:6:38: ") and f'is read by "{names}" of the same script' in said, said
    run(f"{more}CREATE SINK o USING csv OPTIONS (path 'sub', mode 'changes') AS SELECT v FROM f;")


def fault_two_sinks_of_one_path(run: Run) -> None:
    script = "CREATE SINK a USING csv OPTIONS (path 'o') AS SELECT v FROM f;"
    said = run(script + script.replace("SINK a", "SINK b").replace("'o'", "'./o'"), status=2)
    assert said == 'SQ7005 q.sql:2:96: the sinks "a" and "b" have one path, give each its own\n'
