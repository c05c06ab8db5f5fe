"""TPC-H: data by its generator, and the schemas as streams.

python -m squallpy.testing.tpch 0.1 examples/tpch/data        parquet files of all tables at scale 0.1
python -m squallpy.testing.tpch 0.1 /tmp/tpch tbl             the same as .tbl, with | after every field
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KEYS = {"partsupp": ("ps_partkey", "ps_suppkey"), "lineitem": ("l_orderkey", "l_linenumber")}
STATIC = ("nation", "region")  # do not change: CREATE TABLE
COLUMNS: dict[str, str] = {
    "region": "r_regionkey INT, r_name VARCHAR, r_comment VARCHAR",
    "nation": "n_nationkey INT, n_name VARCHAR, n_regionkey INT, n_comment VARCHAR",
    "supplier": "s_suppkey BIGINT, s_name VARCHAR, s_address VARCHAR, s_nationkey INT, s_phone VARCHAR, "
    "s_acctbal DECIMAL(15,2), s_comment VARCHAR",
    "customer": "c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey INT, c_phone VARCHAR, "
    "c_acctbal DECIMAL(15,2), c_mktsegment VARCHAR, c_comment VARCHAR",
    "part": "p_partkey BIGINT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INT, "
    "p_container VARCHAR, p_retailprice DECIMAL(15,2), p_comment VARCHAR",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15,2), "
    "ps_comment VARCHAR",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DECIMAL(15,2), "
    "o_orderdate DATE, o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INT, o_comment VARCHAR",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15,2), "
    "l_extendedprice DECIMAL(15,2), l_discount DECIMAL(15,2), l_tax DECIMAL(15,2), l_returnflag VARCHAR, "
    "l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR, "
    "l_shipmode VARCHAR, l_comment VARCHAR",
}


def create(table: str, folder: str = "data", format: str = "parquet") -> str:
    """The declaration of a table, its rows in `folder`; every column is NOT NULL, as the standard's data is."""
    columns = [f"    {column.strip()} NOT NULL" for column in split_columns(COLUMNS[table])]
    key = KEYS.get(table, (COLUMNS[table].split()[0],))
    columns.append(f"    PRIMARY KEY ({', '.join(key)})")
    kind = "TABLE" if table in STATIC else "STREAM"
    more = "" if format == "parquet" else ", delimiter '|'"
    using, ending = ("parquet", "parquet") if format == "parquet" else ("csv", "tbl")
    body = ",\n".join(columns)
    return f"CREATE {kind} {table} (\n{body}\n) USING {using} OPTIONS (path '{folder}/{table}.{ending}'{more});\n"


def split_columns(text: str) -> list[str]:
    """At the commas that are not within parentheses."""
    parts = [""]
    for piece in text.split(","):
        if parts[-1].count("(") > parts[-1].count(")"):
            parts[-1] += f",{piece}"
        else:
            parts.append(piece)
    return parts[1:]


def generate(scale: float, folder: Path, format: str = "parquet") -> Path:
    """All tables at a scale factor in `folder`, made once; needs tpchgen-cli on the PATH or beside the interpreter."""
    done = folder / "scale"
    if done.exists() and done.read_text().strip() == f"{scale:g} {format}":
        return folder
    program = shutil.which("tpchgen-cli") or str(Path(sys.executable).parent / "tpchgen-cli")
    folder.mkdir(parents=True, exist_ok=True)
    command = [program, format, "-s", f"{scale:g}", "-q", "--overwrite"]
    subprocess.run([*command, "--output-dir", str(folder)], check=True)
    done.write_text(f"{scale:g} {format}\n")
    return folder


def cached(scale: float, format: str = "parquet") -> Path:
    """The same in the folder for temporary files, shared by all test runs."""
    return generate(scale, Path(tempfile.gettempdir()) / "squallpy-tpch" / f"{format}-{scale:g}", format)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        generate(float(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:4])
    except FileNotFoundError:
        sys.exit("tpchgen-cli makes the data and is not on the PATH: pip install tpchgen-cli")
