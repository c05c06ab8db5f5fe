"""The reference of the SQL, written from the tables that the binder itself asks: `docs/sql.md`."""

from collections.abc import Iterable, Mapping

from squallpy.frontend.unsupported import AGGREGATES, CLAUSES, FUNCTIONS, JOINS, NODES, QUERIES, STATEMENTS, Unsupported
from squallpy.logical.bind.aggregates.collector import NAMES
from squallpy.logical.bind.scalar_functions import NAMED, WITH_OVER

HEAD = """# The SQL

What a script may say, and what it means, is in [sql_semantics.md](sql_semantics.md). These tables are written from
the code by `make plans`.

"""


ROWS = """Where a function takes a constant, an expression that reads no column is one, too: `PERCENTILE(x, 1 - 0.25)`.

"""
MAKERS = (
    ("`EXPLODE(a)`, `UNNEST(a)`", "a row for each part of `SPLIT(x, 'p')`, or value of the series below"),
    ("`POSEXPLODE(a)`", "the same with its position, from 0 on"),
    ("`EXPLODE_OUTER(a)`, `POSEXPLODE_OUTER(a)`", "the same, and a row of NULL where there is none"),
    ("`SEQUENCE(a, b [, step])`", "from a to b as in Spark, down if b is less; a step that leads away is an error"),
    ("`GENERATE_SERIES(a, b [, step])`", "from a to b as in PostgreSQL and DuckDB; none if the step leads away"),
    ("`RANGE([a,] b [, step])`", "from a, or 0, to before b, as in Spark and DuckDB"),
)
QUERIES_RUN = """They stand in SELECT, in LATERAL VIEW, behind a comma or in LEFT JOIN LATERAL … ON TRUE with columns of
what is before them, and as tables where they are constant: `FROM range(10)`, `FROM generate_series(1, 5) AS g(x)`.
GENERATE_SERIES and RANGE need no EXPLODE in FROM. Bounds are integers, or DATEs or TIMESTAMPs with an INTERVAL for a
step, of months or of days and less; a NULL makes no row. A series has a million values at most.

"""
LIMITS = """## Limits

- One BIGINT is reserved: −9223372034200340039 can be filtered, added up and computed with, but not selected, grouped,
  ordered or joined on, nor be a MIN or MAX of BIGINTs; that is error SQ5003. A DECIMAL(19,0) has it.
"""


def manual() -> str:
    """The text of `docs/sql.md`."""
    refused = {u.name: u.hint for u in _constructs(CLAUSES, JOINS, NODES, QUERIES)}
    refused |= {f"{word} as a statement": "" for word in STATEMENTS}
    refused |= {f"{name}(…)": hint for name, hint in (AGGREGATES | FUNCTIONS).items()}
    text = (
        HEAD
        + _table("Aggregates", ("function",), ((f"`{name}`",) for name in sorted(NAMES)))
        + "All of them go with OVER as well.\n\n"
        + _table("Window functions", ("function",), ((f"`{name}`",) for name in sorted(WITH_OVER)))
        + _table("Functions", ("function", "arguments"), ((f"`{name}`", _count(name)) for name in sorted(NAMED)))
        + "Besides: CAST, EXTRACT, TRIM, CASE, BETWEEN, IN, LIKE, SIMILAR TO, IS NULL, ||, &, |, ^, ~.\n\n"
        + ROWS
        + _table("Rows made of a value", ("function", "what it makes"), MAKERS)
        + QUERIES_RUN
        + _table(
            "Refused by name",
            ("construct", "instead"),
            ((name, refused[name]) for name in sorted(refused, key=str.lower)),
        )
    )
    return text + LIMITS


def _constructs(*tables: Mapping[str, Unsupported]) -> Iterable[Unsupported]:
    return (construct for table in tables for construct in table.values())


def _count(name: str) -> str:
    least, most, _ = NAMED[name]
    return str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_row(head), _row(("---",) * len(head)), *(_row(row) for row in rows)]
    return f"## {title}\n\n" + "\n".join(lines) + "\n\n"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"
