"""Functions that make rows of a value, and their common operation."""

from squallpy.base.records import dataclass
from squallpy.base.types import VARCHAR
from squallpy.functions.entries import Operation
from squallpy.functions.type_rules import series, types


@dataclass(frozen=True, slots=True)
class RowFunction:
    """A function that generates rows, in SELECT or in FROM."""

    syntax: str
    doc: str


ROW_FUNCTIONS = (
    RowFunction(
        "EXPLODE(a) or UNNEST(a)",
        "a row for each element of an ARRAY, key of a MAP, part of `SPLIT(x, 'p')`, item of `ARRAY(x, y)` or "
        "`MAP('k', x, 'l', y)`, or value of the series below",
    ),
    RowFunction("POSEXPLODE(a)", "the same with its position, from 0 on"),
    RowFunction("EXPLODE_OUTER(a) or POSEXPLODE_OUTER(a)", "the same, and a row of NULL where there is none"),
    RowFunction("STACK(n, x, y, …)", "n rows of the values, in order, filled up with NULL"),
    RowFunction(
        "JSON_TUPLE(s, 'a', 'b', …)", "one row of the fields of a JSON object with these names, NULL where it has none"
    ),
    RowFunction("INLINE(a)", "a row for each STRUCT of an ARRAY, whose fields are columns"),
    RowFunction(
        "SEQUENCE(a, b [, step])", "from a to b as in Spark, down if b is less; a step that leads away is an error"
    ),
    RowFunction(
        "GENERATE_SERIES(a, b [, step])", "from a to b as in PostgreSQL and DuckDB; none if the step leads away"
    ),
    RowFunction("RANGE([a,] b [, step])", "from a, or 0, to before b, as in Spark and DuckDB"),
)

SERIES = {"SEQUENCE": (True, True), "GENERATE_SERIES": (True, False), "RANGE": (False, False)}
"""Two properties of each: it includes its stop; a step that leads away from it is an error."""

SEQUENCE = Operation("sequence", 3, 5, series, "start, stop and step of a series, whose values become rows")
SERIES_ARRAY = Operation("series_array", 4, 6, lambda name, args: (types(args), VARCHAR), "a series as an ARRAY")
"""The name of its function comes before the arguments of SEQUENCE."""
