"""The text of programs: what is read, and what is refused, at its place."""

import pytest

from squallpy.base.errors import SquallError
from squallpy.base.semirings import ARITHMETIC, BOOLEAN, COUNTING, Semiring
from squallpy.maintain.matrix.dimensions import Size
from squallpy.maintain.matrix.matrix_expressions import Name
from squallpy.maintain.matrix.matrix_program import MatrixInput
from squallpy.maintain.matrix.parser import read_program

SHAPES: dict[str, tuple[int | str, int | str]] = {
    "A": ("n", "n"),
    "X": ("m", "n"),
    "Y": ("m", 1),
    "Y2": ("n", 1),
    "F": (3, 4),
}
INPUTS = [MatrixInput(Name(name, Size.of(rows), Size.of(cols))) for name, (rows, cols) in SHAPES.items()]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("B := A * A; C := B + A", "B := A * A\nC := B + A"),
        ("A @ A", "result := A * A"),
        ("B := A·A", "B := A * A"),
        ("B := -A - 2 * A / 4", "B := -A - (0.25 * (2 * A))"),
        ("B := A'", "B := A'"),
        ("B := A^3", "B := iterate[2](A)(power => A * power)"),
        ("B := A^-1", "B := inv(A)"),
        ("B := [A, A; A', A']", "B := [[A, A]; [A', A']]"),
        ("B := hstack(X, Y)", "B := [X, Y]"),
        ("B := vstack(A, X)", "B := [A; X]"),
        ("B := fill(n, n + 1, (1 - 0.85) / n)", "B := fill(n, n + 1, 0.15 / n)"),
        ("B := zeros(rows(X), cols(X)) + X", "B := zeros(m, n) + X"),
        ("B := let x := A * A in x * x", "B := let x := A * A in x * x"),
        ("B := iterate[2 * 8](A)(x => x * x) -- squares", "B := iterate[16](A)(x => x * x)"),
        (
            "B := iterate[2](A)(x => iterate[3](x)(x => x * A))",
            "B := iterate[2](A)(x => iterate[3](x)(x_1 => x_1 * A))",
        ),
        ("B := eye(n) + diag(n, 2) /* both */ ;", "B := eye(n) + diag(n, 2)"),
        ("B := LET x := Inv(A) In x * x", "B := let x := inv(A) in x * x"),
        ("B := Iterate[2](A)(x => x * A)", "B := iterate[2](A)(x => x * A)"),
        ("B := iterate[9](A)(x => x * A) UNTIL 1e-9", "B := iterate[9](A)(x => x * A) until 1e-09"),
        ("B := iterate[9](A)(until => until * A) until (1 / 4)", "B := iterate[9](A)(until => until * A) until 0.25"),
        ("B := A .* A' ./ (A + 1 * A)", "B := (A .* A') ./ (A + 1 * A)"),
        ("B := 2.*A.*A; C := 1./A; D := A ./ 4", "B := (2 * A) .* A\nC := 1 ./ A\nD := 0.25 * A"),
        ("B := A .^ -2 * A", "B := (A .^ -2) * A"),
        (
            "B := A - A > 0.5; C := A != A'; D := A = 0; E := A == 0",
            "B := (A - A) > 0.5\nC := A <> A'\nD := A = 0\nE := A = 0",
        ),
        ("B := (A >= 1) + (A <= n)", "B := (A >= 1) + (A <= n)"),
        ("B := Max(A, 0) + abs(A)", "B := max(A, 0) + abs(A)"),
        ("s := sum(X); r := rowSums(X)", "s := ones(1, m) * X * ones(n, 1)\nr := X * ones(n, 1)"),
        ("c := colsums(X); t := trace(A * A)", "c := ones(1, m) * X\nt := ones(1, n) * diag(A * A)"),
        ("d := diag(A) + diag(n, 2) * Y2", "d := diag(A) + diag(n, 2) * Y2"),
    ],
)
def test_programs(text: str, wanted: str) -> None:
    assert str(read_program(text, INPUTS)).replace("0.15000000000000002", "0.15") == wanted


@pytest.mark.parametrize(
    ("text", "ring", "code", "column", "message"),
    [
        ("B := X * X", ARITHMETIC, "SQ2011", 6, "cannot multiply X (m × n) and X (m × n)"),
        ("B := trace(A) * A", ARITHMETIC, "SQ2011", 6, "(1 × 1) and A (n × n), spread the 1 × 1 one by"),
        ("B := A * sum(X .* X)", ARITHMETIC, "SQ2011", 6, "(1 × 1), spread the 1 × 1"),
        ("B := A + A * Y", ARITHMETIC, "SQ2011", 10, "cannot multiply A (n × n) and Y (m × 1)"),
        ("B := F + F'", ARITHMETIC, "SQ2011", 6, "cannot add F (3 × 4) and F' (4 × 3)"),
        ("B := [A, Y]", ARITHMETIC, "SQ2011", 6, "cannot put side by side A (n × n) and Y (m × 1)"),
        ("B := vstack(A, Y)", ARITHMETIC, "SQ2011", 6, "cannot put one upon the other"),
        ("B := inv(X)", ARITHMETIC, "SQ2011", 6, "only a square matrix has an inverse"),
        ("B := Cholesky(X)", ARITHMETIC, "SQ2011", 6, "only a square matrix has a Cholesky factor, X (m × n) is none"),
        ("B := qr_r(F)", ARITHMETIC, "SQ2011", 6, "F (3 × 4) has fewer rows than columns"),
        ("B := cholesky(A)", COUNTING, "SQ3002", 6, 'the counting semiring has no "cholesky" of a matrix'),
        ("B := QR_q(X, X)", ARITHMETIC, "SQ2012", 6, "qr_q takes 1 argument, not 2"),
        ("B := qr(X)", ARITHMETIC, "SQ2012", 6, 'unknown function "qr", write qr_q(X) or qr_r(X)'),
        (
            "B := chol(A)",
            ARITHMETIC,
            "SQ2012",
            6,
            'unknown function "chol", write cholesky(A), which is lower triangular',
        ),
        ("B := A .* X", ARITHMETIC, "SQ2011", 6, "cannot multiply entry by entry A (n × n) and X (m × n)"),
        ("B := X < X'", ARITHMETIC, "SQ2011", 6, "cannot compare entry by entry X (m × n) and X' (n × m)"),
        ("B := trace(X)", ARITHMETIC, "SQ2011", 6, "only a square matrix has a diagonal, X (m × n) is none"),
        ("B := A + (1 < 2)", ARITHMETIC, "SQ2012", 11, '"<" of numbers'),
        ("B := max(A)", ARITHMETIC, "SQ2012", 6, "max takes 2 arguments, not 1"),
        ("B := iterate[9](A)(x => x * A) until A", ARITHMETIC, "SQ2012", 38, "A (n × n) is a matrix, not a number"),
        ("B := iterate[9](A)(x => x * A) until n", ARITHMETIC, "SQ2012", 6, "iterate until n"),
        ("B := iterate[9](A)(x => x * A) until 0.5", BOOLEAN, "SQ3002", 6, "the boolean semiring has no differences"),
        ("B := A > A", BOOLEAN, "SQ3002", 6, 'the boolean semiring has no ">" of entries'),
        ("B := A ./ A", COUNTING, "SQ3002", 6, 'the counting semiring has no "./" of entries'),
        ("B := X^2", ARITHMETIC, "SQ2011", 6, "only a square matrix has powers"),
        ("B := iterate[2](X)(x => A)", ARITHMETIC, "SQ2011", 6, "cannot iterate from"),
        ("B := Q * A", ARITHMETIC, "SQ2012", 6, 'unknown matrix "Q"'),
        ("B := svd(A)", ARITHMETIC, "SQ2012", 6, 'unknown function "svd"'),
        ("B := inv(A, A)", ARITHMETIC, "SQ2012", 6, "inv takes 1 argument, not 2"),
        ("B := eye(A)", ARITHMETIC, "SQ2012", 10, "A (n × n) is a matrix, not a number"),
        ("B := eye(0 - 2)", ARITHMETIC, "SQ2012", 10, "-2 is no dimension"),
        ("B := 3", ARITHMETIC, "SQ2012", 6, "3 is a number, not a matrix"),
        ("B := A + 1", ARITHMETIC, "SQ2012", 6, "a number and a matrix are not added"),
        ("B := A / A", ARITHMETIC, "SQ2012", 6, "division by a matrix"),
        ("B := iterate[0 - 1](A)(x => x)", ARITHMETIC, "SQ2012", 14, "iterate -1 times"),
        ("B := iterate[n](A)(x => x)", ARITHMETIC, "SQ2012", 14, "how often is n"),
        ("A := A * A", ARITHMETIC, "SQ2012", 1, '"A" is there already'),
        ("B := A - A", BOOLEAN, "SQ3002", 6, "the boolean semiring has no subtraction"),
        ("B := inv(A)", COUNTING, "SQ3002", 6, "the counting semiring has no inverse of a matrix"),
        ("B := A *", ARITHMETIC, "SQ1001", 9, "ends too early"),
        ("B := A ** A", ARITHMETIC, "SQ1001", 9, 'unexpected "*"'),
        (";", ARITHMETIC, "SQ1001", 1, "without a statement"),
    ],
)
def test_mistakes(text: str, ring: Semiring, code: str, column: int, message: str) -> None:
    with pytest.raises(SquallError) as raised:
        read_program(text, INPUTS, ring)
    error = raised.value
    assert message in str(error)
    assert (error.code, error.span and error.span.column) == (code, column)
