"""Expressions over columns in Python, which become text of our SQL: (r.price * (1 - r.discount)).round(2)

An expression is parts of a text, with the names of columns between them, which are found when it is used in a relation:
a row of a lambda knows its relation, `sum_("price")` does not yet.
"""

import datetime as dt
import math
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, NoReturn

from squallpy.base.call_site import CallSite, call_site
from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.frontend.declaration_text import quote_name, quote_text


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a column of the relation in which the expression is used."""

    text: str
    site: CallSite


@dataclass(frozen=True, slots=True)
class Reference:
    """A column of a row, as SQL."""

    row: "Row"
    name: str
    text: str
    site: CallSite


Part = str | Name | Reference | Callable[["Row"], Any]


class Expression:
    """A value of each row, or of each group.

    Its operators are Python's, with & for AND, | for OR and ~ for NOT; its methods the functions of SQL, of which it is
    the first argument: `r.name.upper()`, `r.price.round(2)`, `col("price").median()`.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *parts: Part) -> None:
        self._parts = parts

    # operators

    def __add__(self, other: Any) -> "Expression":
        return _binary(self, "+", other)

    def __radd__(self, other: Any) -> "Expression":
        return _binary(other, "+", self)

    def __sub__(self, other: Any) -> "Expression":
        return _binary(self, "-", other)

    def __rsub__(self, other: Any) -> "Expression":
        return _binary(other, "-", self)

    def __mul__(self, other: Any) -> "Expression":
        return _binary(self, "*", other)

    def __rmul__(self, other: Any) -> "Expression":
        return _binary(other, "*", self)

    def __truediv__(self, other: Any) -> "Expression":
        return _binary(self, "/", other)

    def __rtruediv__(self, other: Any) -> "Expression":
        return _binary(other, "/", self)

    def __mod__(self, other: Any) -> "Expression":
        return _binary(self, "%", other)

    def __rmod__(self, other: Any) -> "Expression":
        return _binary(other, "%", self)

    def __pow__(self, other: Any) -> "Expression":
        return _call("POWER", (self, other))

    def __rpow__(self, other: Any) -> "Expression":
        return _call("POWER", (other, self))

    def __neg__(self) -> "Expression":
        return Expression("(- ", *self._parts, ")")

    def __and__(self, other: Any) -> "Expression":
        return _binary(self, "AND", other)

    def __rand__(self, other: Any) -> "Expression":
        return _binary(other, "AND", self)

    def __or__(self, other: Any) -> "Expression":
        return _binary(self, "OR", other)

    def __ror__(self, other: Any) -> "Expression":
        return _binary(other, "OR", self)

    def __invert__(self) -> "Expression":
        return Expression("(NOT ", *self._parts, ")")

    def __eq__(self, other: Any) -> "Expression":  # type: ignore[override]
        return _comparison(self, "=", other)

    def __ne__(self, other: Any) -> "Expression":  # type: ignore[override]
        return _comparison(self, "<>", other)

    def __lt__(self, other: Any) -> "Expression":
        return _comparison(self, "<", other)

    def __le__(self, other: Any) -> "Expression":
        return _comparison(self, "<=", other)

    def __gt__(self, other: Any) -> "Expression":
        return _comparison(self, ">", other)

    def __ge__(self, other: Any) -> "Expression":
        return _comparison(self, ">=", other)

    def __getitem__(self, position: Any) -> "Expression":
        """Return an item of an array or a map; SQ2005 for a slice."""
        return Expression(*self._parts, "[", *_value(position), "]")

    def __bool__(self) -> NoReturn:
        hint = "write & for and, | for or, ~ for not, is_null() and isin(…), with parentheses around comparisons"
        raise SquallError("SQ2005", "an expression is no condition of Python", call_site().span(), hint)

    def __iter__(self) -> Iterator[Any]:
        raise SquallError("SQ2005", "an expression has no items in Python", call_site().span())

    # what is no function of SQL

    def alias(self, name: str) -> "Named":
        """Name the column that it becomes."""
        return Named(name, self)

    def cast(self, type: str) -> "Expression":
        """Convert it to a type of SQL: cast("DECIMAL(12,2)")."""
        return Expression("CAST(", *self._parts, f" AS {type})")

    def try_cast(self, type: str) -> "Expression":
        """Convert it to a type of SQL; NULL for what does not fit."""
        return Expression("TRY_CAST(", *self._parts, f" AS {type})")

    def is_null(self) -> "Expression":
        """Test for NULL."""
        return Expression("(", *self._parts, " IS NULL)")

    def is_not_null(self) -> "Expression":
        """Test for any value but NULL."""
        return Expression("(", *self._parts, " IS NOT NULL)")

    def eq_null_safe(self, other: Any) -> "Expression":
        """Compare so that NULL equals NULL."""
        return _binary(self, "<=>", other)

    def isin(self, *values: Any) -> "Expression":
        """Test if it is one of some values."""
        if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset):
            values = tuple(values[0])
        if not values:
            return Expression("FALSE")
        listed = [part for value in values for part in (", ", *_value(value))][1:]
        return Expression("(", *self._parts, " IN (", *listed, "))")

    def between(self, low: Any, high: Any) -> "Expression":
        """Test if it is in a range, both ends included."""
        return Expression("(", *self._parts, " BETWEEN ", *_value(low), " AND ", *_value(high), ")")

    def like(self, pattern: str) -> "Expression":
        """Match a pattern with % and _."""
        return _binary(self, "LIKE", pattern)

    def ilike(self, pattern: str) -> "Expression":
        """Match a pattern with % and _ without regard to case."""
        return _binary(self, "ILIKE", pattern)

    def rlike(self, pattern: str) -> "Expression":
        """Match a regular expression."""
        return _binary(self, "RLIKE", pattern)

    def asc(self, nulls_first: bool | None = None) -> "Ordering":
        """Order by it, the least first."""
        return Ordering(*self._parts, _ordered("ASC", nulls_first))

    def desc(self, nulls_first: bool | None = None) -> "Ordering":
        """Order by it, the greatest first."""
        return Ordering(*self._parts, _ordered("DESC", nulls_first))

    def over(
        self, partition_by: "Argument | tuple[Argument, ...]" = (), order_by: "Argument | tuple[Argument, ...]" = ()
    ) -> "Expression":
        """Compute an aggregate or a window function over the rows of a partition."""
        clauses = list[Part]()
        for words, keys in (("PARTITION BY ", partition_by), ("ORDER BY ", order_by)):
            listed = [part for key in _as_tuple(keys) for part in (", ", *argument(key, call_site())._parts)][1:]
            clauses += [" " if clauses else "", words, *listed] if listed else []
        return Expression(*self._parts, " OVER (", *clauses, ")")

    @property
    def column_name(self) -> str | None:
        """The name of the column that it is; None if it is computed."""
        match self._parts:
            case (Name(name) | Reference(name=name),):
                return name
        return None

    def __getattr__(self, name: str) -> "Callable[..., Expression]":
        if name.startswith("__"):
            raise AttributeError(name)
        called = _function(name, call_site())

        def method(*args: Any) -> Expression:
            return _call(called, (self, *args))

        return method

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name.lower() for name in _functions())})

    def render(self, row: "Row") -> str:
        """Write it as SQL over the columns of a row."""
        return "".join(part if isinstance(part, str) else row._render(part) for part in self._parts)

    def __repr__(self) -> str:
        names = (p.text if isinstance(p, Name) else getattr(p, "name", "…") for p in self._parts)
        texts = (p if isinstance(p, str) else quote_name(n) for p, n in zip(self._parts, names, strict=True))
        return f"<expression {''.join(texts)}>"


class Ordering(Expression):
    """An expression of order_by, with its direction."""


@dataclass(frozen=True, slots=True)
class Named:
    """An expression under a name."""

    name: str
    expression: Expression


class Row:
    """The columns of a relation, as attributes: r.price, or r["price"].

    Args:
        columns: SQL by name.
    """

    __slots__ = ("_columns", "_others")

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns, self._others = columns, tuple[Row, ...]()

    def __getattr__(self, name: str) -> Expression:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._column(name, call_site())

    def __getitem__(self, name: str) -> Expression:
        return self._column(name, call_site())

    def __dir__(self) -> list[str]:
        return [*self._columns]

    def _column(self, name: str, site: CallSite) -> Expression:
        return Expression(Reference(self, name, self._find(name, site), site))

    def _find(self, name: str, site: CallSite) -> str:
        """Find a column; SQ2003 at its place in the Python code."""
        if name in self._columns:
            return self._columns[name]
        found = [known for known in self._columns if known.lower() == name.lower()]
        if not found:
            hint = nearest(name, self._columns)
            raise SquallError("SQ2003", f'unknown column "{name}"', site.word(name), hint)
        return self._columns[found[0]]

    def _beside(self, *others: "Row") -> "Row":
        """Let expressions over this row name columns of other rows, too."""
        self._others = others
        return self

    def _render(self, part: "Name | Reference | Callable[[Row], Any]") -> str:
        match part:
            case Name(text, site):
                return self._find(text, site)
            case Reference(row, _, text, site):
                if row is not self and all(row is not other for other in self._others):
                    raise SquallError("SQ2003", "a column of another relation", site.span(), "join the two")
                return text
        return as_expression(part(self)).render(self)


Argument = str | Expression | Callable[[Row], Any]
"""A column: its name, an expression, or a function of a row that returns one."""


# what is written with expressions


def col(name: str) -> Expression:
    """Name a column of the relation in which the expression is used."""
    return Expression(Name(name, call_site()))


def lit(value: Any) -> Expression:
    """Write a value of Python as a constant: lit("x")."""
    return Expression(*_value(value))


def expr(text: str) -> Expression:
    """Take an expression as text of SQL, over the columns of the relation in which it is used."""
    return Expression(f"({text})")


def when(condition: Argument, value: Any) -> "Case":
    """Begin a CASE: when(r.price > 10, "dear").when(…).otherwise("cheap")."""
    return Case((" WHEN ", *argument(condition, call_site())._parts, " THEN ", *_value(value)))


class Case(Expression):
    """A CASE; NULL where no condition is true, unless `otherwise` says more."""

    def __init__(self, branches: tuple[Part, ...]) -> None:
        super().__init__("CASE", *branches, " END")
        self._branches = branches

    def when(self, condition: Argument, value: Any) -> "Case":
        """Add a condition and its value."""
        return Case((*self._branches, *when(condition, value)._branches))

    def otherwise(self, value: Any) -> Expression:
        """Set the value where no condition is true."""
        return Expression("CASE", *self._branches, " ELSE ", *_value(value), " END")


def call_function(name: str, *args: Any, distinct: bool = False, where: Argument | None = None) -> Expression:
    """Call a function or an aggregate by its name, one of SQL or that is declared; texts among the arguments are names
    of columns.

    Args:
        distinct: Each value counts once.
        where: Only the rows of an aggregate for which it is TRUE.

    Raises:
        SquallError: SQ2004 for an unknown name, when a relation takes the expression.
    """
    site = call_site()
    given = tuple(argument(each, site) if isinstance(each, str) or callable(each) else each for each in args)
    is_declared = name.isidentifier() and name.upper() not in _functions()
    called = _call(name if is_declared else _function(name, site), given, "DISTINCT " if distinct else "")
    if where is None:
        return called
    return Expression(*called._parts, " FILTER (WHERE ", *argument(where, site)._parts, ")")


def count(column: Argument | None = None, *, distinct: bool = False, where: Argument | None = None) -> Expression:
    """Count rows, or the values of a column that are not NULL."""
    return call_function("COUNT", Expression("*") if column is None else column, distinct=distinct, where=where)


def sum_(column: Argument, *, distinct: bool = False, where: Argument | None = None) -> Expression:
    """Add values; NULL over none."""
    return call_function("SUM", column, distinct=distinct, where=where)


def avg(column: Argument, *, distinct: bool = False, where: Argument | None = None) -> Expression:
    """Compute the mean of values; NULL over none."""
    return call_function("AVG", column, distinct=distinct, where=where)


def min_(column: Argument, *, where: Argument | None = None) -> Expression:
    """Find the least value."""
    return call_function("MIN", column, where=where)


def max_(column: Argument, *, where: Argument | None = None) -> Expression:
    """Find the greatest value."""
    return call_function("MAX", column, where=where)


def desc(column: Argument) -> Ordering:
    """Order by a column, the greatest first."""
    return argument(column, call_site()).desc()


# how they are written


def argument(value: Any, site: CallSite) -> Expression:
    """Take the name of a column, an expression, or a function of a row, as an expression."""
    if isinstance(value, str):
        return Expression(Name(value, site))
    if isinstance(value, Expression):
        return value
    if callable(value):
        return Expression(value)
    raise SquallError("SQ2005", f"a {type(value).__name__} is no column", site.span(), "write its name, or lit(…)")


def as_expression(value: Any) -> Expression:
    """Take what a function of a row returns as an expression."""
    return value if isinstance(value, Expression) else Expression(*_value(value))


def _binary(left: Any, operator: str, right: Any) -> Expression:
    return Expression("(", *_value(left), f" {operator} ", *_value(right), ")")


def _comparison(left: Any, operator: str, right: Any) -> Expression:
    if right is None:
        message = "a comparison with None is NULL for every row"
        raise SquallError("SQ2005", message, call_site().span(), "write is_null() or is_not_null()")
    return _binary(left, operator, right)


def _call(name: str, args: tuple[Any, ...], before: str = "") -> Expression:
    listed = [part for each in args for part in (", ", *_value(each))][1:]
    return Expression(f"{name}({before}", *listed, ")")


def _ordered(direction: str, nulls_first: bool | None) -> str:
    nulls = "" if nulls_first is None else f" NULLS {'FIRST' if nulls_first else 'LAST'}"
    return f" {direction}{nulls}"


def _as_tuple(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _functions() -> tuple[str, ...]:
    from squallpy.functions.registry import AGGREGATES, SCALARS, WINDOWS  # NB: it takes long to load

    return (*SCALARS, *AGGREGATES, *WINDOWS)


def _function(name: str, site: CallSite) -> str:
    """Find a function of SQL; SQ2004 if there is none."""
    known = _functions()
    if name.upper() not in known:
        raise SquallError("SQ2004", f'unknown function "{name}"', site.word(name), nearest(name, known))
    return name.upper()


def _value(value: Any) -> tuple[Part, ...]:
    """Write a value of Python in SQL; SQ2005 for one that has no type there."""
    match value:
        case Expression():
            return value._parts
        case None:
            return ("NULL",)
        case bool():
            return (str(value).upper(),)
        case int():
            return (str(value) if value >= 0 else f"({value})",)
        case float() if math.isfinite(value):
            return (f"CAST('{value!r}' AS DOUBLE)",)
        case float():
            return (f"CAST('{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}' AS DOUBLE)",)
        case Decimal() if value.is_finite():
            return (f"({value:f})" if value < 0 else f"{value:f}",)
        case str():
            return (quote_text(value),)
        case bytes():
            return (f"X'{value.hex()}'",)
        case dt.datetime():
            moment = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return (f"TIMESTAMP '{moment.isoformat(' ')}'",)
        case dt.date():
            return (f"DATE '{value.isoformat()}'",)
        case dt.timedelta():
            return (f"INTERVAL '{value // dt.timedelta(microseconds=1)}' MICROSECOND",)
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        return _value(value.item())
    kind = type(value).__name__
    raise SquallError("SQ2005", f"a {kind} has no type in SQL", call_site().span(), "write a number, text or date")
