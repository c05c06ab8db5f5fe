"""JSON lines beside the same rows as csv: processor time of whole runs in one process, in turns.

python -m bench.json_lines [rows] [turns]
"""

import random
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import process_time

from squallpy.script_session import RunOptions, ScriptSession
from squallpy.testing.ignoring_sink import IgnoringSink

COLUMNS = "k BIGINT, cust INT, price DECIMAL(10,2), day DATE, segment VARCHAR"
QUERIES = {
    "a number": "SELECT cust, SUM(price) AS s, COUNT(*) AS n FROM f WHERE day > DATE '1995-03-01' GROUP BY cust",
    "a text": "SELECT segment, day, SUM(price) AS s, COUNT(*) AS n FROM f GROUP BY segment, day",
    "all": "SELECT segment, MAX(price) AS m, SUM(k) AS s, COUNT(DISTINCT cust) AS c FROM f GROUP BY segment",
}


def write(folder: Path, rows: int) -> None:
    """Write the rows in both formats."""
    draw = random.Random(3)
    with (folder / "f.csv").open("w") as csv, (folder / "f.json").open("w") as lines:
        for k in range(rows):
            cust, price = draw.randrange(50_000), f"{draw.randrange(100_000) / 100:.2f}"
            day = f"1995-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}"
            name = draw.choice(["BUILDING", "MACHINERY", "AUTOMOBILE"])
            csv.write(f"{k},{cust},{price},{day},{name}\n")
            lines.write(f'{{"k": {k}, "cust": {cust}, "price": {price}, "day": "{day}", "segment": "{name}"}}\n')


def seconds(folder: Path, format: str, query: str, batch_rows: int) -> float:
    """Run a query over one of the formats."""
    text = f"CREATE STREAM f ({COLUMNS}) USING {format} OPTIONS (path 'f.{format}');\n{query};"
    began = process_time()
    ScriptSession(folder / "q.sql", None, text).run(RunOptions("local", batch_rows=batch_rows), IgnoringSink())
    return process_time() - began


def main(rows: int = 600_000, turns: int = 7) -> None:
    """Print a line for each query and size of batches."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, rows)
        for batch_rows in (10_000, 100_000):
            for what, query in QUERIES.items():
                turned = [[seconds(folder, each, query, batch_rows) for each in ("csv", "json")] for _ in range(turns)]
                ratio = median(csv / lines for csv, lines in turned)
                csv, lines = (median(side) for side in zip(*turned, strict=True))
                about = f"{what:10} batches of {batch_rows:7,}"
                print(f"{about}  csv {csv:.2f} s  JSON {lines:.2f} s  {ratio:.2f} × the rows a second")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
