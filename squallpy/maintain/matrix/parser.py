"""The text of a matrix program → Program (`grammar/matrix.lark`).

read_program("B := A * A; C := B * B", inputs=[A(n, n)])   →   B := A * A
                                                               C := B * B
"""

from collections.abc import Callable, Sequence

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.semirings import ARITHMETIC, Semiring
from squallpy.frontend.grammars import Parsed, load_grammar
from squallpy.frontend.source_text import ScriptText
from squallpy.functions.graph_functions import MOST_STEPS
from squallpy.maintain.matrix.decompositions import MatrixFactor
from squallpy.maintain.matrix.dimensions import (
    ONE,
    ONE_SIZE,
    ZERO,
    Arithmetic,
    Dimension,
    Number,
    Scalar,
    Size,
    arithmetic,
    as_size,
)
from squallpy.maintain.matrix.entrywise_functions import FUNCTIONS as ENTRYWISE
from squallpy.maintain.matrix.entrywise_functions import SPELLINGS
from squallpy.maintain.matrix.matrix_expressions import (
    Diagonal,
    Fill,
    Inverse,
    Iterate,
    Let,
    MainDiagonal,
    Matrix,
    Name,
    add,
    describe,
    misfit,
    product,
    shape,
    stack,
    stack_rows,
    transpose,
)
from squallpy.maintain.matrix.matrix_program import MatrixInput, MatrixProgram, Statement
from squallpy.maintain.matrix.symbolic_matrices import (
    column_sums,
    decompose,
    entrywise,
    fresh_name,
    iteration_bound,
    power,
    row_sums,
    scale,
    subtract,
)

Value = Matrix | Scalar
Scope = dict[str, Value]
RESULT = "result"  # what an expression without a name is called
_SCALARS = (Number, Dimension, Arithmetic)


def read_program(
    text: str,
    inputs: Sequence[MatrixInput],
    ring: Semiring = ARITHMETIC,
    script: ScriptText | None = None,
    start: int = 0,
    end: int | None = None,
) -> MatrixProgram:
    """Parse the program in text[start:end] of a script, or in a text of its own. Every statement is an output.

    Raises SquallError at its place: SQ1001 for what cannot be read, SQ2011 for shapes that do not fit, SQ2012 for
    names, functions and arguments that are none, SQ3002 for what the semiring has not.
    """
    script = script or ScriptText(text, "program")
    return _Reader(script, inputs, ring).program(start, len(script.text) if end is None else end)


class _Reader:
    """Reads the trees of one program."""

    def __init__(self, script: ScriptText, inputs: Sequence[MatrixInput], ring: Semiring) -> None:
        self._script, self._inputs, self._ring = script, tuple(inputs), ring
        symbols = {symbol for i in inputs for size in (i.name.rows, i.name.cols) for symbol, _ in size.symbols}
        self._scope: Scope = {symbol: Dimension(Size.of(symbol)) for symbol in symbols}
        self._scope |= {i.name.name: i.name for i in inputs}
        self._taken = set(self._scope)

    def program(self, start: int, end: int) -> MatrixProgram:
        statements = []
        for tree in self._parse_lines(start, end).children:
            named, body = tree.children
            value = self._matrix(body, self._scope)
            name = str(named) if named else RESULT
            if isinstance(self._scope.get(name), Name):
                raise self._error("SQ2012", f'"{name}" is there already', named or tree, "give it another name")
            left = Name(name, *shape(value))
            statements.append(Statement(left, value))
            self._scope[name] = left
            self._taken.add(name)
        if not statements:
            span = self._script.span(start, end)
            raise SquallError("SQ1001", "a matrix program without a statement", span, "write B := A * A")
        return MatrixProgram(self._inputs, tuple(statements), tuple(s.name.name for s in statements), self._ring)

    def _parse_lines(self, start: int, end: int) -> Parsed:
        from lark import UnexpectedInput

        from squallpy.frontend.script import syntax_error

        parser = load_grammar("matrix")
        try:
            return parser.parse(" " * start + self._script.text[start:end])  # so that places are those of the script
        except UnexpectedInput as error:
            raise syntax_error(self._script, parser, error, end) from None

    def _matrix(self, tree: Parsed, scope: Scope) -> Matrix:
        """Parse an expression that is a matrix."""
        value = self._value(tree, scope)
        if isinstance(value, _SCALARS):
            raise self._error("SQ2012", f"{value} is a number, not a matrix", tree, f"write fill(1, 1, {value})")
        return value  # type: ignore[return-value]

    def _scalar(self, tree: Parsed, scope: Scope) -> Scalar:
        value = self._value(tree, scope)
        if not isinstance(value, _SCALARS):
            raise self._error("SQ2012", f"{describe(value)} is a matrix, not a number", tree)  # type: ignore[arg-type]
        return value

    def _size(self, tree: Parsed, scope: Scope) -> Size:
        value = self._scalar(tree, scope)
        size = as_size(value)
        if size is None:
            raise self._error("SQ2012", f"{value} is no dimension", tree, "a dimension is a whole number of 0 or more")
        return size

    def _value(self, tree: Parsed, scope: Scope) -> Value:
        """Parse an expression; errors have its place."""
        try:
            return self._read(tree, scope)
        except SquallError as error:
            raise error.at(self._span(tree)) from None

    def _read(self, tree: Parsed, scope: Scope) -> Value:
        match tree.data:
            case "number":
                text = str(tree.children[0])
                return Number(int(text) if text.isdigit() else float(text))
            case "name":
                return self._look_up_name(tree, scope)
            case "add" | "subtract" | "multiply" | "divide":
                return self._binary(tree, scope)
            case "entrywise_multiply" | "entrywise_divide" | "entrywise_power":
                op = {"entrywise_multiply": ".*", "entrywise_divide": "./", "entrywise_power": ".^"}[tree.data]
                return self._entrywise(op, tree, tree.children, scope)
            case "compare":
                left, op, right = tree.children
                return self._entrywise(SPELLINGS.get(str(op), str(op)), tree, (left, right), scope)
            case "negate":
                value = self._value(tree.children[0], scope)
                if isinstance(value, _SCALARS):
                    return arithmetic("-", Number(0), value)
                return scale(Number(-1), value, self._ring)  # type: ignore[arg-type]
            case "transpose":
                return transpose(self._matrix(tree.children[0], scope))
            case "power":
                return self._power(tree, scope)
            case "let":
                return self._let(tree, scope)
            case "iterate":
                return self._iterate(tree, scope)
            case "block":
                rows = [stack(*(self._matrix(part, scope) for part in row.children)) for row in tree.children]
                return stack_rows(*rows)
        return self._call(tree, scope)

    def _look_up_name(self, tree: Parsed, scope: Scope) -> Value:
        name = str(tree.children[0])
        if name not in scope:
            raise self._error("SQ2012", f'unknown matrix "{name}"', tree, nearest(name, scope))
        return scope[name]

    def _binary(self, tree: Parsed, scope: Scope) -> Value:
        left, right = (self._value(child, scope) for child in tree.children)
        op = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}[tree.data]
        match isinstance(left, _SCALARS), isinstance(right, _SCALARS):
            case True, True:
                return arithmetic(op, left, right)  # type: ignore[arg-type]
            case True, False if op == "*":
                return scale(left, right, self._ring)  # type: ignore[arg-type]
            case False, True if op == "*":
                return scale(right, left, self._ring)  # type: ignore[arg-type]
            case False, True if op == "/":
                return scale(arithmetic("/", Number(1), right), left, self._ring)  # type: ignore[arg-type]
            case False, False if op != "/":
                make: dict[str, Callable[[Matrix, Matrix], Matrix]] = {"+": add, "-": self._minus, "*": _multiply}
                return make[op](left, right)  # type: ignore[arg-type]
        if op == "/":
            raise self._error("SQ2012", "division by a matrix", tree, "multiply by inv(…)")
        hint = "add fill(rows, cols, number)"
        raise self._error("SQ2012", "a number and a matrix are not added", tree, hint)

    def _entrywise(self, function: str, tree: Parsed, operands: Sequence[Parsed], scope: Scope) -> Value:
        values = [self._value(operand, scope) for operand in operands]
        if all(isinstance(value, _SCALARS) for value in values):
            message = f'"{function}" of numbers, it is applied to the entries of matrices'
            raise self._error("SQ2012", message, tree)
        return entrywise(function, values, self._ring)

    def _minus(self, left: Matrix, right: Matrix) -> Matrix:
        return subtract(left, right, self._ring)

    def _power(self, tree: Parsed, scope: Scope) -> Value:
        base, *rest = tree.children
        exponent = int(next(token for token in rest if token is not None))
        inverted = "-" in self._script.text[base.meta.end_pos : tree.meta.end_pos]
        value = self._value(base, scope)
        if isinstance(value, _SCALARS):
            raise self._error("SQ2012", "a power of a number", tree, "write the number itself")
        return power(value, -exponent if inverted else exponent, self._ring, self._taken)  # type: ignore[arg-type]

    def _let(self, tree: Parsed, scope: Scope) -> Value:
        token, value_tree, body = tree.children
        value = self._matrix(value_tree, scope)
        name = Name(fresh_name(str(token), self._taken), *shape(value))
        return Let(name, value, self._matrix(body, scope | {str(token): name}))

    def _iterate(self, tree: Parsed, scope: Scope) -> Value:
        count_tree, start_tree, token, body, bound_tree = tree.children
        count = self._scalar(count_tree, scope)
        if not isinstance(count, Number) or not isinstance(count.value, int) or not 0 <= count.value <= MOST_STEPS:
            message = f"iterate {count} times" if isinstance(count, Number) else f"how often is {count}"
            hint = f"the count is a number from 0 to {MOST_STEPS}, known before the data"
            raise self._error("SQ2012", message, count_tree, hint)
        start = self._matrix(start_tree, scope)
        name = Name(fresh_name(str(token), self._taken), *shape(start))
        until = None
        if bound_tree is not None:
            bound = self._scalar(bound_tree, scope)
            until = iteration_bound(bound.value if isinstance(bound, Number) else bound, self._ring)
        return Iterate(count.value, start, name, self._matrix(body, scope | {str(token): name}), until)

    def _call(self, tree: Parsed, scope: Scope) -> Value:
        token, *arguments = tree.children
        arguments = [argument for argument in arguments if argument is not None]
        name = token.lower()
        if name == "diag" and len(arguments) == 1:
            return MainDiagonal(self._matrix(arguments[0], scope))
        if name not in FUNCTIONS:
            hint = ELSEWHERE.get(name) or nearest(name, FUNCTIONS)
            raise self._error("SQ2012", f'unknown function "{token}"', token, hint)
        least, most, kinds = FUNCTIONS[name]
        if not least <= len(arguments) <= (most or len(arguments)):
            expected = f"{least} or more" if most is None else str(least) if least == most else f"{least} to {most}"
            message = f"{name} takes {expected} argument{'' if expected == '1' else 's'}, not {len(arguments)}"
            raise self._error("SQ2012", message, tree)
        if name in ENTRYWISE:
            return self._entrywise(name, tree, arguments, scope)
        read = {"m": self._matrix, "s": self._size, "v": self._scalar}
        values = [read[kinds[min(at, len(kinds) - 1)]](arg, scope) for at, arg in enumerate(arguments)]
        return self._apply_function(name, values)

    def _apply_function(self, name: str, values: list) -> Value:  # type: ignore[type-arg]
        match name, values:
            case "inv", [of]:
                if not self._ring.divides:
                    raise SquallError("SQ3002", f"the {self._ring} semiring has no inverse of a matrix")
                return Inverse(of)
            case "cholesky" | "qr_q" | "qr_r", [of]:
                return decompose(MatrixFactor(name), of, self._ring)
            case "eye" | "id", [size]:
                return Diagonal(size)
            case "zeros" | "ones", [rows, cols]:
                return Fill(rows, cols, ZERO if name == "zeros" else ONE)
            case "fill", [rows, cols, value]:
                return Fill(rows, cols, value)
            case "vect", [cols, value]:
                return Fill(Size(1), cols, value)
            case "diag", [size, value]:
                return Diagonal(size, value)
            case "rows", [of]:
                return Dimension(of.rows)
            case "cols", [of]:
                return Dimension(of.cols)
            case "transpose" | "t", [of]:
                return transpose(of)
            case "sum", [of]:
                return column_sums(row_sums(of))
            case "rowsums", [of]:
                return row_sums(of)
            case "colsums", [of]:
                return column_sums(of)
            case "trace", [of]:
                return column_sums(MainDiagonal(of))
        return stack(*values) if name == "hstack" else stack_rows(*values)

    def _error(self, code: str, message: str, tree: Parsed, hint: str = "") -> SquallError:
        return SquallError(code, message, self._span(tree), hint)

    def _span(self, tree: Parsed) -> Span:
        if hasattr(tree, "meta"):
            return self._script.span(tree.meta.start_pos, tree.meta.end_pos)
        return self._script.span(tree.start_pos, tree.end_pos)


ELSEWHERE = {"qr": "write qr_q(X) or qr_r(X)", "chol": "write cholesky(A), which is lower triangular"}
"""Hints for functions of Octave, MATLAB and R that are written in another way here."""
FUNCTIONS: dict[str, tuple[int, int | None, str]] = {
    "inv": (1, 1, "m"), "eye": (1, 1, "s"), "id": (1, 1, "s"), "zeros": (2, 2, "s"), "ones": (2, 2, "s"),
    "fill": (3, 3, "ssv"), "vect": (2, 2, "sv"), "diag": (2, 2, "sv"), "hstack": (1, None, "m"),
    "vstack": (1, None, "m"), "rows": (1, 1, "m"), "cols": (1, 1, "m"), "transpose": (1, 1, "m"), "t": (1, 1, "m"),
    "sum": (1, 1, "m"), "rowsums": (1, 1, "m"), "colsums": (1, 1, "m"), "trace": (1, 1, "m"),
    **dict.fromkeys(MatrixFactor, (1, 1, "m")),
    **{name: (f.operands, f.operands, "m") for name, f in ENTRYWISE.items() if not f.is_operator},
}  # fmt: skip
"""Least and most arguments, and what each is: a matrix, a size, a value; the last letter stands for all behind it."""


def _multiply(left: Matrix, right: Matrix) -> Matrix:
    """Multiply two matrices; SQ2011 if one is a sum or a trace and has the wrong shape, as it is not a number."""
    if left.cols != right.rows and (ONE_SIZE, ONE_SIZE) in (shape(left), shape(right)):
        hint = "spread the 1 × 1 one by ones(n, 1) * … * ones(1, n), and write .* between them"
        raise misfit("multiply", left, right, hint)
    return product(left, right)
