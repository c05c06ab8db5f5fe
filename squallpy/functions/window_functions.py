"""Functions of OVER with an order; every aggregate is one as well."""

from enum import Enum

from squallpy.base.records import dataclass
from squallpy.functions.entries import arity


class WindowKind(Enum):
    """Rows that a window function is computed of."""

    RANK = "the number of rows, or of their values, before"
    SHARE = "the number of rows before and the number of all"
    NEIGHBOUR = "a row some rows away"
    VALUE = "a row of the frame"


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window function; its example gives a value for each row of the examples of aggregates, in the order of x."""

    syntax: str
    kind: WindowKind
    doc: str
    example: str
    alias: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.alias.split())

    @property
    def name(self) -> str:
        return self.syntax[: self.syntax.index("(")]

    @property
    def arity(self) -> tuple[int, int | None]:
        return arity(self.syntax)


WINDOW_FUNCTIONS = (
    WindowFunction(
        "ROW_NUMBER()",
        WindowKind.RANK,
        "the number of the row in the order; of equal rows any",
        "ROW_NUMBER() OVER (ORDER BY x) → 1, 2, 3, 4",
    ),
    WindowFunction(
        "RANK()", WindowKind.RANK, "1 and the number of rows before", "RANK() OVER (ORDER BY x) → 1, 2, 2, 4"
    ),
    WindowFunction(
        "DENSE_RANK()",
        WindowKind.RANK,
        "1 and the number of values before",
        "DENSE_RANK() OVER (ORDER BY x) → 1, 2, 2, 3",
    ),
    WindowFunction(
        "PERCENT_RANK()",
        WindowKind.SHARE,
        "(RANK - 1) / (rows - 1), from 0 to 1",
        "PERCENT_RANK() OVER (ORDER BY x DESC) → 1.0, 0.3333333333333333, 0.3333333333333333, 0.0",
    ),
    WindowFunction(
        "CUME_DIST()",
        WindowKind.SHARE,
        "the fraction of rows up to this and its equals",
        "CUME_DIST() OVER (ORDER BY x) → 0.25, 0.75, 0.75, 1.0",
    ),
    WindowFunction(
        "NTILE(n)",
        WindowKind.SHARE,
        "which of n equal parts the row is in, from 1",
        "NTILE(2) OVER (ORDER BY x) → 1, 1, 2, 2",
    ),
    WindowFunction(
        "LAG(x [, n [, default]])",
        WindowKind.NEIGHBOUR,
        "x of the row n before, by default 1; NULL or default if there is none",
        "LAG(x) OVER (ORDER BY x) → NULL, 1, 2, 2",
    ),
    WindowFunction(
        "LEAD(x [, n [, default]])",
        WindowKind.NEIGHBOUR,
        "x of the row n behind, by default 1; NULL or default if there is none",
        "LEAD(x, 2, 0) OVER (ORDER BY x) → 2, 5, 0, 0",
    ),
    WindowFunction(
        "NTH_VALUE(x, n)",
        WindowKind.VALUE,
        "x of the n-th row of the frame",
        "NTH_VALUE(x, 2) OVER (ORDER BY x) → NULL, 2, 2, 2",
    ),
    WindowFunction(
        "FIRST_VALUE(x)",
        WindowKind.VALUE,
        "x of the first row of the frame",
        "FIRST_VALUE(x) OVER (ORDER BY x DESC) → 5, 5, 5, 5",
        "FIRST",
    ),
    WindowFunction(
        "LAST_VALUE(x)",
        WindowKind.VALUE,
        "x of the last row of the frame, by default that of the row itself",
        "LAST_VALUE(x) OVER (ORDER BY x) → 1, 2, 2, 5",
        "LAST",
    ),
)
