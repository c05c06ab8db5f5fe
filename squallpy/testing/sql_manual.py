"""The reference of the SQL, written from the tables that the binder itself asks: `docs/sql.md`."""

from collections.abc import Iterable, Mapping, Sequence

from squallpy.frontend.unsupported import (
    AGGREGATES,
    CLAUSES,
    FUNCTIONS,
    JOINS,
    NODES,
    QUERIES,
    RECURSION,
    STATEMENTS,
    Unsupported,
)
from squallpy.functions.aggregate.entries import EXAMPLE_COLUMNS, EXAMPLE_ROWS, Aggregate
from squallpy.functions.entries import ARROW, Function
from squallpy.functions.generators import ROW_FUNCTIONS
from squallpy.functions.registry import AGGREGATE_CATEGORIES, SCALAR_CATEGORIES
from squallpy.functions.window_functions import WINDOW_FUNCTIONS, WindowFunction

PIPE = "\\|"  # in a cell of a table, also within code
HEAD = """# The SQL

What a script may say, and what it means, is in [sql_semantics.md](sql_semantics.md). These tables are written from
the code by `make plans`.

"""


EXAMPLES = f"""Examples of aggregates and window functions are over a table of {EXAMPLE_COLUMNS} with the rows
{", ".join(map(str, EXAMPLE_ROWS))}.

"""
WINDOWS = """All aggregates go with OVER and FILTER (WHERE …) as well, and pass over NULLs; beside them, GROUPING and
GROUPING_ID tell the rows of ROLLUP, CUBE and GROUPING SETS apart.

"""
ROWS = """A function of NULL is NULL unless its description says more. Where one takes a constant, an expression that
reads no column is one, too: `PERCENTILE(x, 1 - 0.25)`.

"""
QUERIES_RUN = """They stand in SELECT, in LATERAL VIEW, behind a comma or in LEFT JOIN LATERAL … ON TRUE with columns of
what is before them, and as tables where they are constant: `FROM range(10)`, `FROM generate_series(1, 5) AS g(x)`.
`r, LATERAL (VALUES ('x', x), ('y', y)) t (name, value)` lists rows, too: columns become rows.
GENERATE_SERIES and RANGE need no EXPLODE in FROM. Bounds are integers, or DATEs or TIMESTAMPs with an INTERVAL for a
step, of months or of days and less; a NULL makes no row. A series has a million values at most.

"""
LIMITS = """## Limits

- One BIGINT is reserved: −9223372034200340039 can be filtered, added up and computed with, but not selected, grouped,
  ordered or joined on, nor be a MIN or MAX of BIGINTs; that is error SQ5003. A DECIMAL(19,0) has it.
"""


def manual() -> str:
    """Write the text of `docs/sql.md`."""
    refused = {u.name: u.hint for u in _constructs(CLAUSES, JOINS, NODES, QUERIES, RECURSION)}
    refused |= {f"{word} as a statement": "" for word in STATEMENTS}
    refused |= {f"{name}(…)": hint for name, hint in (AGGREGATES | FUNCTIONS).items()}
    text = (
        HEAD
        + EXAMPLES
        + "".join(_functions(title, aggregates) for title, aggregates in AGGREGATE_CATEGORIES.items())
        + WINDOWS
        + _functions("Window functions", WINDOW_FUNCTIONS)
        + "".join(_functions(title, functions) for title, functions in SCALAR_CATEGORIES.items())
        + "Besides: CAST, EXTRACT, TRIM, CASE, BETWEEN.\n\n"
        + ROWS
        + _table(
            "Rows made of a value", ("function", "what it makes"), ((_syntax(f.syntax), f.doc) for f in ROW_FUNCTIONS)
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


def _functions(title: str, functions: Sequence[Function | Aggregate | WindowFunction]) -> str:
    head = "operator" if title == "Operators" else "function"
    return _table(title, (head, "what it gives", "example"), map(_entry, functions))


def _entry(function: Function | Aggregate | WindowFunction) -> tuple[str, ...]:
    """Format a function as cells: `LENGTH(s)`, also `LEN` | its description | `LENGTH('abc')` → `3`."""
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
