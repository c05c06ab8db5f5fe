"""The compiler of expressions to programs for `kernels/batch_expressions.py`, which evaluate a batch in one call.

price * (1 - discount)   →   r0 = load price | r1 = constant 100 | r2 = load discount | r3 = r1 - r2 | r4 = r0 * r3

Some expressions cannot be compiled. Text functions that cannot fail are computed beforehand, as additional columns.
"""

from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from typing import Any

import numpy as np

from squallpy.base.records import dataclass
from squallpy.base.types import BIGINT, RANGES, VARCHAR, Kind, Type
from squallpy.logical.expressions import (
    COMPARISONS,
    MIRRORED,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    Literal,
    columns,
    substitute,
    walk,
)
from squallpy.runtime.evaluate.exact_arithmetic import LIMIT, digits_bound
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.scalar.datetime import DAY
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, full
from squallpy.runtime.kernels import batch_expressions as op
from squallpy.runtime.kernels.memory_regions import Words

_COMPARE = dict(zip(COMPARISONS, range(op.EQUAL, op.GREATER_EQUAL + 1), strict=True))
_ARITHMETIC = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY}
_ARITHMETIC |= {"add_days": op.ADD, "add_micros": op.ADD, "days_between": op.SUBTRACT}
_REAL = {"+": op.REAL_ADD, "-": op.REAL_SUBTRACT, "*": op.REAL_MULTIPLY, "/": op.DIVIDE}
_PARTS = ("extract_year", "extract_month", "extract_day")
_TEXT_FUNCTIONS = {"like", "startswith", "endswith", "contains", "substring", "upper", "lower", "length", "||"}
_TEXT_FUNCTIONS |= {*COMPARISONS, "in", "and", "or", "not", "is_null"}
_FEW = 8  # texts in a list of IN that are compared one by one


class NotCompilable(Exception):
    """An expression that no program can evaluate."""


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column that is computed before a program runs."""

    expr: Expr
    function: VectorFunction

    def __call__(self, frame: VectorFrame) -> Vec:
        """Compute its values from the fields."""
        return full(self.function(frame), self.expr.type, frame.rows)


@dataclass(frozen=True, slots=True)
class KernelProgram:
    """The code, and the columns that it loads: fields by name, or columns computed from texts."""

    code: Words
    sources: tuple[str | ComputedColumn, ...]
    types: tuple[Type, ...]
    registers: int
    texts: tuple[bytes, ...]  # keeps alive the memory that the code addresses


@dataclass(slots=True)
class ProgramBuilder:
    """A program under construction. `fields` maps column ids to the fields that it reads."""

    fields: dict[int, str]
    _code: list[int] = field(default_factory=list)
    _sources: list[str | ComputedColumn] = field(default_factory=list)
    _types: list[Type] = field(default_factory=list)
    _texts: list[bytes] = field(default_factory=list)
    _registers: dict[Expr, int] = field(default_factory=dict)  # of compiled expressions
    _assigned: dict[int, int] = field(default_factory=dict)  # variables
    _text_variables: dict[int, Expr] = field(default_factory=dict)  # variables that are texts
    _count: int = 0

    def program(self) -> KernelProgram:
        code = np.array(self._code, np.int64)
        return KernelProgram(code, tuple(self._sources), tuple(self._types), self._count, tuple(self._texts))

    def assign(self, variable: Column, value: Expr) -> None:
        """Bind a variable to a value from here on."""
        if variable.type.kind is Kind.VARCHAR:
            self._text_variables[variable.id] = substitute(value, self._text_variables)
        else:
            self._assigned[variable.id] = self.value(value)

    def filter(self, predicates: Sequence[Expr]) -> None:
        """Drop the rows for which one of the predicates is not TRUE."""
        if predicates:
            tests = [self.value(predicate) for predicate in predicates]
            self._emit(op.FILTER, reduce(lambda a, b: self._fill(op.AND, a, b), tests))
            self._registers.clear()
            for register in set(self._assigned.values()):
                self._emit(op.KEEP, register)

    def key(self, place: int, column: Column, least: int) -> None:
        """Emit a key, whose value is at least `least`."""
        register = self.value(column)
        if column.type.kind is Kind.DOUBLE:
            register = self._fill(op.REAL_KEY, register)
        self._emit(op.KEY, place, register, least)

    def lane(self, at: int, words: int, factors: Sequence[Expr], times: Expr | None) -> None:
        """Emit a lane of this many words: the product of exact factors, NULL being 0, multiplied by `times`."""
        product = [self.value(f) for f in factors] or [self.value(Literal(1, BIGINT))]
        register = reduce(lambda a, b: self._fill(op.MULTIPLY, a, b), product)
        self._emit(op.LANE, at, words, register, -1 if times is None else self.value(times))

    def word(self, at: int, value: Expr) -> None:
        """Emit the word of a value, 0 for NULL: of a double its bits."""
        self._emit(op.LANE, at, 1, self.value(value), -1)

    def value(self, expr: Expr) -> int:
        """Return the register that holds an expression; raises NotCompilable if no program can evaluate it."""
        if isinstance(expr, Column) and expr.id in self._assigned:
            return self._assigned[expr.id]
        if expr not in self._registers:
            self._registers[expr] = self._compile(expr)
        return self._registers[expr]

    def _compile(self, expr: Expr) -> int:
        if expr.type.kind in (Kind.VARCHAR, Kind.INTERVAL):
            raise NotCompilable(expr)
        match expr:
            case Column(id):
                return self._fill(op.LOAD, self._column(self.fields[id], expr.type))
            case Literal(value):
                return self._constant(value, expr.type)
            case Cast(arg, target):
                return self._cast(self.value(arg), arg.type, target)
            case Case(whens, otherwise):
                out = self.value(otherwise)
                for condition, value in reversed(whens):
                    out = self._fill(op.CHOOSE, self.value(condition), self.value(value), out)
                return out
            case Call():
                return self._call(expr)
        raise AssertionError(expr)

    def _call(self, call: Call) -> int:
        name, args = call.name, call.args
        if any(arg.type.kind is Kind.VARCHAR for arg in args):
            return self._call_on_texts(call)
        if name in _COMPARE:
            return self._fill(_COMPARE[name], *(self._ordinal(arg) for arg in args))
        if name == "in" and args[0].type.kind is not Kind.DOUBLE:
            same = [self._fill(op.EQUAL, self.value(args[0]), self.value(arg)) for arg in args[1:]]
            return reduce(lambda a, b: self._fill(op.OR, a, b), same)
        if name in ("and", "or"):
            operation = op.AND if name == "and" else op.OR
            return reduce(lambda a, b: self._fill(operation, a, b), [self.value(arg) for arg in args])
        if name in ("not", "is_null"):
            return self._fill(op.NOT if name == "not" else op.IS_NULL, self.value(args[0]))
        if name == "micros":
            return self.value(args[0])
        if name in _PARTS and args[0].type.kind is Kind.DATE:
            return self._fill(op.PART, self.value(args[0]), _PARTS.index(name))
        if name == "negate" and call.type.is_exact:
            return self._fill(op.SUBTRACT, self._constant(0, BIGINT), self.value(args[0]))
        if name == "day_to_second":
            return self._within(self.value(args[0]), call.type)
        operations = _REAL if call.type.kind is Kind.DOUBLE else _ARITHMETIC
        if name in operations:
            register = self._fill(operations[name], *(self.value(arg) for arg in args))
            return self._within(register, call.type)
        raise NotCompilable(call)

    def _within(self, register: int, type: Type) -> int:
        """Check that a value is one of its type, where that has a range."""
        if type.kind in RANGES:
            self._emit(op.WITHIN, register, *RANGES[type.kind])
        return register

    def _call_on_texts(self, call: Call) -> int:
        """Compile a function of texts: a field compared with constants, or one that cannot fail."""
        match call:
            case Call(name, (Column(id), Literal(str(text)))) if name in _COMPARE and id in self.fields:
                return self._text(_COMPARE[name], id, text)
            case Call(name, (Literal(str(text)), Column(id))) if name in _COMPARE and id in self.fields:
                return self._text(_COMPARE[MIRRORED[name]], id, text)
            case Call("in", (Column(id), *listed)) if id in self.fields and len(listed) <= _FEW and _all_texts(listed):
                same = [self._text(op.EQUAL, id, each.value) for each in listed if isinstance(each, Literal)]
                return reduce(lambda a, b: self._fill(op.OR, a, b), same)
        expr = substitute(call, self._text_variables)
        if not all(_cannot_fail(part) for part in walk(expr)) or any(c.id not in self.fields for c in columns(expr)):
            raise NotCompilable(call)
        source = ComputedColumn(expr, compile_expression(expr))
        self._sources.append(source)
        self._types.append(call.type)
        return self._fill(op.LOAD, len(self._sources) - 1)

    def _cast(self, register: int, source: Type, target: Type) -> int:
        if source == target:
            return register
        if source.kind is Kind.DATE and target.kind is Kind.TIMESTAMP:
            return self._fill(op.MULTIPLY, register, self._constant(DAY, BIGINT))
        if source.is_exact and target.kind is Kind.DOUBLE and 10**source.scale < LIMIT:
            return self._fill(op.TO_REAL, register, _bits(10.0**source.scale))
        step = target.scale - source.scale
        if not (source.is_exact and target.is_exact) or step < 0:
            raise NotCompilable
        if step:
            register = self._fill(op.MULTIPLY, register, self._constant(10**step, BIGINT))
        bound = digits_bound(target)
        if digits_bound(source) * 10**step > bound and bound < LIMIT:
            self._emit(op.WITHIN, register, -bound if target.is_integer else 1 - bound, bound - 1)
        return register

    def _ordinal(self, expr: Expr) -> int:
        register = self.value(expr)
        return self._fill(op.ORDINAL, register) if expr.type.kind is Kind.DOUBLE else register

    def _constant(self, value: Any, type: Type) -> int:
        if type.kind is Kind.DOUBLE and value is not None:
            value = _bits(value)
        if value is not None and not -LIMIT < value < LIMIT:
            raise NotCompilable(value)
        return self._fill(op.CONSTANT, int(value or 0), int(value is None))

    def _text(self, comparison: int, id: int, text: str) -> int:
        encoded = text.encode()
        self._texts.append(encoded)
        at = int(np.frombuffer(encoded or b"\0", np.uint8).__array_interface__["data"][0])
        return self._fill(op.TEXT, self._column(self.fields[id], VARCHAR), comparison, at, len(encoded))

    def _column(self, name: str, type: Type) -> int:
        if name not in self._sources:
            self._sources.append(name)
            self._types.append(type)
        return self._sources.index(name)

    def _fill(self, operation: int, *operands: int) -> int:
        """Emit an operation that fills a register of its own."""
        self._count += 1
        self._code += [operation, self._count - 1, *operands, *[0] * (op.WIDTH - 2 - len(operands))]
        return self._count - 1

    def _emit(self, operation: int, *operands: int) -> None:
        """Emit an operation without a result."""
        self._code += [operation, 0, *operands, *[0] * (op.WIDTH - 2 - len(operands))]


def _bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def _all_texts(exprs: Sequence[Expr]) -> bool:
    return all(isinstance(e, Literal) and isinstance(e.value, str) for e in exprs)


def _cannot_fail(expr: Expr) -> bool:
    return isinstance(expr, Column | Literal) or (isinstance(expr, Call) and expr.name in _TEXT_FUNCTIONS)
