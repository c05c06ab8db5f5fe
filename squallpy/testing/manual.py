"""The reference of the SQL, written from the tables that the binder itself asks: `docs/sql.md`."""

from collections.abc import Iterable, Mapping

from squallpy.frontend.unsupported import AGGREGATES, CLAUSES, FUNCTIONS, JOINS, NODES, QUERIES, STATEMENTS, Unsupported
from squallpy.functions.function import ARROW, Function
from squallpy.functions.registry import SCALAR_CATEGORIES
from squallpy.functions.table import ROW_FUNCTIONS
from squallpy.logical.bind.aggregates.collector import NAMES
from squallpy.logical.bind.scalar_functions import WITH_OVER

PIPE = "\\|"  # in a cell of a table, also within code
HEAD = """# The SQL

What a script may say is in the [README](../README.md#sql). These tables are written from the code by `make plans`.

"""


ROWS = """Where a function takes a constant, an expression that reads no column is one, too: `PERCENTILE(x, 1 - 0.25)`.

"""
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
        + "".join(
            _table(
                title,
                ("operator" if title == "Operators" else "function", "what it gives", "example"),
                map(_entry, functions),
            )
            for title, functions in SCALAR_CATEGORIES.items()
        )
        + "Besides: CAST, EXTRACT, TRIM, CASE, BETWEEN.\n\n"
        + ROWS
        + _table(
            "Rows made of a value",
            ("function", "what it makes"),
            ((_syntax(f.syntax), f.doc) for f in ROW_FUNCTIONS),
        )
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


def _entry(function: Function) -> tuple[str, ...]:
    """LENGTH(s)  →  `LENGTH(s)`, also `LEN`  |  what it gives  |  `LENGTH('abc')` → `3`"""
    syntax = _syntax(function.syntax)
    aliases = ", ".join(f"`{name}`" for name in function.names[1:])
    return (f"{syntax}, also {aliases}" if aliases else syntax, function.doc, _code(function.example))


def _syntax(ways: str) -> str:
    return " or ".join(f"`{way}`" for way in ways.split(" or "))


def _code(example: str) -> str:
    return ARROW.join(f"`{part}`" for part in example.split(ARROW))


def _table(title: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [_row(head), _row(("---",) * len(head)), *(_row(row) for row in rows)]
    return f"## {title}\n\n" + "\n".join(lines) + "\n\n"


def _row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cell.replace('|', PIPE) for cell in cells)} |"
