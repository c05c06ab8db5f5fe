"""Dimensions and the numbers made of them: symbols stand for what only the data tell.

Size.of("n") + 1     →   n + 1          the columns of hstack(A, b)
Ratio(0.15, n)       →   0.15 / n       an entry of `fill`
"""

from collections.abc import Mapping

from squallpy.base.records import dataclass
from squallpy.base.semirings import Semiring, Value

Sizes = Mapping[str, int]  # symbols → numbers


@dataclass(frozen=True, slots=True)
class Size:
    """A constant plus multiples of symbols, in alphabetical order."""

    constant: int = 0
    symbols: tuple[tuple[str, int], ...] = ()

    @staticmethod
    def of(size: "int | str | Size") -> "Size":
        if isinstance(size, Size):
            return size
        return Size(size) if isinstance(size, int) else Size(0, ((size, 1),))

    def __add__(self, other: "Size | int") -> "Size":
        other = Size.of(other)
        counts = dict(self.symbols)
        for symbol, times in other.symbols:
            counts[symbol] = counts.get(symbol, 0) + times
        kept = tuple(sorted((symbol, times) for symbol, times in counts.items() if times))
        return Size(self.constant + other.constant, kept)

    def __mul__(self, times: int) -> "Size":
        return Size(self.constant * times, tuple((symbol, n * times) for symbol, n in self.symbols if times))

    def __sub__(self, other: "Size | int") -> "Size":
        return self + Size.of(other) * -1

    @property
    def fixed(self) -> bool:
        return not self.symbols

    def at(self, sizes: Sizes) -> int:
        """Evaluate a dimension; every symbol must have a number."""
        return self.constant + sum(sizes[symbol] * times for symbol, times in self.symbols)

    def __str__(self) -> str:
        parts = [symbol if times == 1 else f"{times}{symbol}" for symbol, times in self.symbols]
        parts += [str(self.constant)] if self.constant or not parts else []
        return " + ".join(parts).replace("+ -", "- ")


ONE_SIZE = Size(1)


@dataclass(frozen=True, slots=True)
class Unit:
    """The zero or the one of whatever semiring the program is run in."""

    name: str

    def at(self, sizes: Sizes, ring: Semiring) -> Value:
        return ring.one if self == ONE else ring.zero  # NB: a program may have been pickled

    def __str__(self) -> str:
        return self.name


ZERO, ONE = Unit("zero"), Unit("one")


@dataclass(frozen=True, slots=True)
class Number:
    """A value as written."""

    value: Value

    def at(self, sizes: Sizes, ring: Semiring) -> Value:
        return self.value

    def __str__(self) -> str:
        return f"{self.value:g}" if isinstance(self.value, float) else str(self.value)


@dataclass(frozen=True, slots=True)
class Dimension:
    """A dimension as a value."""

    size: Size

    def at(self, sizes: Sizes, ring: Semiring) -> Value:
        return self.size.at(sizes)

    def __str__(self) -> str:
        return f"({self.size})" if len(self.size.symbols) + bool(self.size.constant) > 1 else str(self.size)


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """left op right, op one of + - * /; on numbers as everybody writes them, whatever the semiring."""

    op: str
    left: "Scalar"
    right: "Scalar"

    def at(self, sizes: Sizes, ring: Semiring) -> Value:
        a, b = self.left.at(sizes, ring), self.right.at(sizes, ring)
        match self.op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
        return a / b if b else float("nan")

    def __str__(self) -> str:
        return f"{_inner(self.left)} {self.op} {_inner(self.right)}"


Scalar = Unit | Number | Dimension | Arithmetic


def _inner(scalar: Scalar) -> str:
    return f"({scalar})" if isinstance(scalar, Arithmetic) else str(scalar)


def arithmetic(op: str, left: Scalar, right: Scalar) -> Scalar:
    """Fold scalars as far as they go without sizes: 2 * 3 → 6, n + 1 stays a dimension."""
    match op, left, right:
        case _, Number(a), Number(b) if op != "/" or b:
            return Number(a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a / b)
        case "+" | "-", _, _ if (p := _size(left)) is not None and (q := _size(right)) is not None:
            return Dimension(p + q if op == "+" else p - q)
        case "*", Number(int(times)), Dimension(size):
            return Dimension(size * times)
        case "*", Dimension(size), Number(int(times)):
            return Dimension(size * times)
    return Arithmetic(op, left, right)


def _size(scalar: Scalar) -> Size | None:
    """Convert a scalar to a dimension; None if it cannot be one."""
    match scalar:
        case Dimension(size):
            return size
        case Number(int(whole)):
            return Size(whole)
    return None


def as_size(scalar: Scalar) -> Size | None:
    """Convert a scalar to a dimension; it must be whole and not negative, as far as that is known."""
    size: Size | None = _size(scalar)
    return None if size is None or (size.fixed and size.constant < 0) else size
