"""Processor time of a short run, and of compiling queries that repeat one construct n and 2 n times.

python -m bench.compile_time [NAME …]

A row has the processor seconds of `squall explain`, start included, for n and 2 n copies of a construct, and their
ratio without the time of the least query: 2 is linear, 4 quadratic. `triggers` is the compilation, `physical` also the
placement on two partitions.
"""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

REPEATS = 3  # of each measurement, the least of which counts
PLACED = ("FULL JOINs", "JOINs with", "JOINs on")  # constructs whose placement is measured, too
R = "CREATE STREAM r (k INT, x INT, v INT) USING csv OPTIONS (path 'r.csv', header 'true');\n"


def streams(count: int) -> str:
    """Declare streams e0, e1, …"""
    lines = (f"CREATE STREAM e{i} (k INT, x INT) USING csv OPTIONS (path 'r.csv');\n" for i in range(count))
    return "".join(lines)


def listed(many: Callable[[int], str], count: int, between: str = ", ") -> str:
    """Write the 1st, 2nd, … of a construct."""
    return between.join(map(many, range(1, count + 1)))


def joined(kind: str) -> Callable[[int], str]:
    """Write a query that reads the columns of many streams, joined by one key."""
    return lambda n: (
        listed(lambda i: f"CREATE STREAM e{i} (k INT, x{i} INT) USING csv OPTIONS (path 'r.csv');\n", n + 1, "")
        + f"SELECT k, {listed(lambda i: f'x{i}', n + 1)} FROM e1 "
        + listed(lambda i: f"{kind} JOIN e{i + 1} USING (k)", n, " ")
    )


def by_own_keys(kind: str) -> Callable[[int], str]:
    """Write a query over a chain of streams, each joined to the one before it by a key of its own."""
    return lambda n: (
        listed(lambda i: f"CREATE STREAM e{i} (k{i} INT, n{i} INT) USING csv OPTIONS (path 'r.csv');\n", n + 1, "")
        + f"SELECT {listed(lambda i: f'k{i}', n + 1)} FROM e1 "
        + listed(lambda i: f"{kind} JOIN e{i + 1} ON n{i} = k{i + 1}", n, " ")
    )


QUERIES: dict[str, tuple[int, Callable[[int], str]]] = {
    "copies of a stream in a chain": (
        10,
        lambda n: R + "SELECT COUNT(*) FROM r a0 " + listed(lambda i: f"JOIN r a{i} ON a{i - 1}.x = a{i}.k", n, " "),
    ),
    "LEFT JOINs of one stream": (
        8,
        lambda n: R + "SELECT COUNT(*) FROM r a0 " + listed(lambda i: f"LEFT JOIN r a{i} ON a0.k = a{i}.k", n, " "),
    ),
    "FULL JOINs of many streams": (
        49,
        lambda n: streams(n + 1) + "SELECT COUNT(*) FROM e0 " + listed(lambda i: f"FULL JOIN e{i} USING (k)", n, " "),
    ),
    "FULL JOINs with all their columns": (49, joined("FULL")),
    "FULL JOINs with a sum of each column": (
        49,
        lambda n: (
            joined("FULL")(n).replace(listed(lambda i: f"x{i}", n + 1), listed(lambda i: f"SUM(x{i}) AS s{i}", n + 1))
            + " GROUP BY k"
        ),
    ),
    "FULL JOINs on expressions": (
        49,
        lambda n: (
            streams(n + 1)
            + "SELECT COUNT(*) FROM e0 "
            + listed(lambda i: f"FULL JOIN e{i} ON e{i - 1}.k + 1 = e{i}.k + 1", n, " ")
        ),
    ),
    "FULL JOINs on one expression": (
        49,
        lambda n: (
            listed(lambda i: f"CREATE STREAM e{i} (k INT, x{i} INT) USING csv OPTIONS (path 'r.csv');\n", n + 1, "")
            + f"SELECT {listed(lambda i: f'x{i}', n + 1)} FROM e1 "
            + listed(
                lambda i: (
                    f"FULL JOIN e{i + 1} ON COALESCE(NULL, {listed(lambda j: f'e{j}.k', i)}) + 1 = e{i + 1}.k + 1"
                ),
                n,
                " ",
            )
        ),
    ),
    "FULL JOINs on different keys": (49, by_own_keys("FULL")),
    "LEFT JOINs with all their columns": (49, joined("LEFT")),
    "JOINs with all their columns": (49, joined("")),
    "LEFT JOINs on different keys": (49, by_own_keys("LEFT")),
    "JOINs on different keys": (49, by_own_keys("")),
    "orders of window functions": (
        8,
        lambda n: R + "SELECT k, " + listed(lambda i: f"SUM(x) OVER (ORDER BY v + {i}) AS c{i}", n) + " FROM r",
    ),
    "EXISTS over one stream": (
        30,
        lambda n: (
            R
            + "SELECT k FROM r WHERE "
            + listed(lambda i: f"EXISTS (SELECT 1 FROM r s WHERE s.k = r.k AND s.x > r.x + {i})", n, " AND ")
        ),
    ),
    "scalar subqueries": (
        100,
        lambda n: R + "SELECT " + listed(lambda i: f"(SELECT SUM(x) FROM r WHERE v = {i}) AS c{i}", n),
    ),
    "views by UNION ALL": (
        400,
        lambda n: R + listed(lambda i: f"SELECT k, SUM(x) AS s FROM r WHERE v = {i} GROUP BY k", n, " UNION ALL "),
    ),
}


def main(names: Sequence[str]) -> None:
    """Print a row for a short run, and one for each construct whose name has one of `names` in it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "r.csv").write_text("k,x,v\n1,2,3\n2,3,4\n1,4,5\n3,3,1\n2,2,2\n")
        (place / "short.sql").write_text(f"{R}SELECT k, SUM(x) FROM r GROUP BY k;\n")
        print(f"a run of five rows in this process: {seconds(place, 'run', '--backend', 'local', 'short.sql'):.2f} s")
        least = seconds(place, "explain", "triggers", "short.sql")
        print(f"explain triggers of its query: {least:.2f} s")
        for name, (n, query) in QUERIES.items():
            if not names or any(part in name for part in names):
                for stage in ("triggers", "physical") if any(part in name for part in PLACED) else ("triggers",):
                    times = []
                    for count in (n, 2 * n):
                        (place / "many.sql").write_text(query(count) + ";\n")
                        times.append(seconds(place, "explain", stage, "many.sql"))
                    growth = (times[1] - least) / max(times[0] - least, 0.01)
                    print(
                        f"{n} and {2 * n} {name}, {stage}: {times[0]:.2f} s, {times[1]:.2f} s, {growth:.1f} ×",
                        flush=True,
                    )


def seconds(place: Path, *arguments: str) -> float:
    """Measure the processor time of a `squall` command."""
    found = []
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = (sys.executable, "-m", "squallpy.terminal", *arguments)
        subprocess.run(command, cwd=place, env=os.environ, stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


if __name__ == "__main__":
    main(sys.argv[1:])
