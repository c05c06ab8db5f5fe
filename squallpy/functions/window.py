"""Functions that only stand before OVER; every aggregate may stand there as well."""

from dataclasses import dataclass

from squallpy.functions.function import arity


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A window function; its example gives a value for each row of the examples of aggregates, in the order of x."""

    syntax: str
    doc: str
    example: str

    @property
    def name(self) -> str:
        return self.syntax[: self.syntax.index("(")]

    @property
    def arity(self) -> tuple[int, int | None]:
        return arity(self.syntax)


WINDOW_FUNCTIONS = (
    WindowFunction(
        "ROW_NUMBER()",
        "the number of the row in the order; of equal rows any",
        "ROW_NUMBER() OVER (ORDER BY x) → 1, 2, 3, 4",
    ),
    WindowFunction("RANK()", "1 and the number of rows before", "RANK() OVER (ORDER BY x) → 1, 2, 2, 4"),
    WindowFunction("DENSE_RANK()", "1 and the number of values before", "DENSE_RANK() OVER (ORDER BY x) → 1, 2, 2, 3"),
    WindowFunction(
        "PERCENT_RANK()",
        "(RANK - 1) / (rows - 1), from 0 to 1",
        "PERCENT_RANK() OVER (ORDER BY x DESC) → 1.0, 0.3333333333333333, 0.3333333333333333, 0.0",
    ),
    WindowFunction(
        "CUME_DIST()",
        "the share of rows up to this and its equals",
        "CUME_DIST() OVER (ORDER BY x) → 0.25, 0.75, 0.75, 1.0",
    ),
    WindowFunction(
        "NTILE(n)", "which of n equal parts the row is in, from 1", "NTILE(2) OVER (ORDER BY x) → 1, 1, 2, 2"
    ),
    WindowFunction(
        "LAG(x [, n [, default]])",
        "x of the row n before, by default 1; NULL or default if there is none",
        "LAG(x) OVER (ORDER BY x) → NULL, 1, 2, 2",
    ),
    WindowFunction(
        "LEAD(x [, n [, default]])",
        "x of the row n behind, by default 1; NULL or default if there is none",
        "LEAD(x, 2, 0) OVER (ORDER BY x) → 2, 5, 0, 0",
    ),
    WindowFunction(
        "NTH_VALUE(x, n)", "x of the n-th row of the frame", "NTH_VALUE(x, 2) OVER (ORDER BY x) → NULL, 2, 2, 2"
    ),
)
