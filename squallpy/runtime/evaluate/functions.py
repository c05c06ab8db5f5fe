"""Expressions → functions from frames to vectors.

compiled(call("*", price, call("-", one, discount)))(frame)   →   Vec([…], valid)
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import COMPARISONS, ROUNDED, Call, Case, Cast, Column, Expr, Literal, columns
from squallpy.logical.functions import FUNCTIONS, REALS
from squallpy.runtime.evaluate import dates, hashes, json_paths, logic, numbers, texts
from squallpy.runtime.evaluate.casts import cast, tried
from squallpy.runtime.evaluate.computed_patterns import varying
from squallpy.runtime.evaluate.constants import constant
from squallpy.runtime.evaluate.guarded import arm_by_arm, guarded, one_by_one
from squallpy.runtime.evaluate.vectors import Frame, Vec, both, full

Function = Callable[[Frame], Vec]


def compiled(expr: Expr) -> Function:
    """The function that evaluates `expr`; literals stay scalars."""
    match expr:
        case Column(id):
            return lambda frame: frame[id]
        case Literal(value):
            constant = Vec(value if value is not None else _filler(expr), None if value is not None else False)
            return lambda frame: constant
        case Cast(arg, target):
            inner, source = compiled(arg), arg.type
            return lambda frame: cast(inner(frame), source, target, frame.rows, expr)
        case Case(whens, otherwise, type):
            arms = [(compiled(c), compiled(v)) for c, v in whens]
            last = compiled(otherwise)
            return guarded(
                lambda frame: logic.case([(c(frame), v(frame)) for c, v in arms], last(frame), type, frame.rows),
                arm_by_arm(arms, last, type),
            )
        case Call(name, args) if FUNCTIONS[name].settings and any(a == Literal(None, a.type) for a in args):
            nothing = Vec(_filler(Literal(None, expr.type)), False)
            return lambda frame: nothing
        case Call(name, args) if any(columns(a) for a in args[FUNCTIONS[name].settings or len(args) :]):
            return varying(expr, compiled)
        case Call():
            return _call(expr)
    raise AssertionError(expr)


def _filler(literal: Literal) -> Any:
    return "" if literal.type.kind in (Kind.VARCHAR, Kind.NULL) else False if literal.type.kind is Kind.BOOLEAN else 0


def _call(call: Call) -> Function:
    name, args = call.name, [compiled(a) for a in call.args]
    kind = call.args[0].type
    match name:
        case "and":
            return guarded(lambda frame: logic.conjunction([a(frame) for a in args]), one_by_one(args, True))
        case "or":
            return guarded(lambda frame: logic.disjunction([a(frame) for a in args]), one_by_one(args, False))
        case "not":
            return _unary(args[0], np.logical_not)
        case "<=>":
            equal = _call(replace(call, name="="))
            return lambda frame: logic.same(equal(frame), args[0](frame), args[1](frame), frame.rows)
        case "is_null":
            return lambda frame: logic.is_null(args[0](frame), frame.rows)
        case "in":
            listed = [a.value for a in call.args[1:] if isinstance(a, Literal) and a.value is not None]
            assert all(isinstance(a, Literal) for a in call.args[1:])
            has_null = len(listed) < len(call.args) - 1
            return lambda frame: logic.member(args[0](frame), listed, has_null, kind)
        case "+" | "-" | "*":
            return _binary(args, _arithmetic(call))
        case _ if name in ROUNDED:
            return _binary(args, numbers.rounded_decimals(call))
        case "/":
            return _binary(args, numbers.divide)
        case "%":
            return _binary(args, numbers.remainder)
        case "div":
            return _binary(args, numbers.quotient(call))
        case "negate":
            return _signed(args[0], np.negative, call)
        case "sqrt" | "exp" | "sign":
            return _unary(args[0], _quietly({"sqrt": np.sqrt, "exp": np.exp, "sign": np.sign}[name]))
        case _ if name in REALS:
            return _unary(
                args[0], _quietly(getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name)))
            )
        case "ln" | "log10" | "log2":
            return lambda frame: numbers.logarithm(name, args[0](frame))
        case "power" | "atan2" | "hypot":
            return _binary(args, numbers.real({"power": np.power, "atan2": np.arctan2, "hypot": np.hypot}[name]))
        case "bit_and" | "bit_or" | "bit_xor":
            operate: Any = {"bit_and": np.bitwise_and, "bit_or": np.bitwise_or, "bit_xor": np.bitwise_xor}[name]
            return _binary(args, lambda a, b: Vec(operate(a.values, b.values), both(a.valid, b.valid)))
        case "shift_left" | "shift_right":
            move: Any = np.left_shift if name == "shift_left" else np.right_shift
            return _binary(args, lambda a, b: Vec(move(a.values, np.bitwise_and(b.values, 63)), both(a.valid, b.valid)))
        case "bit_count":
            return _unary(args[0], numbers.bit_count)
        case "tried":
            match call.args[0]:
                case Cast(arg, target):
                    given = compiled(arg)
                    return lambda frame: tried(given(frame), arg.type, target, frame.rows)
            return args[0]
        case "bit_not":
            return _unary(args[0], np.bitwise_not)
        case "round":
            places = _constant(call, 1)
            if kind.is_exact:
                return lambda frame: numbers.tens(args[0](frame), kind, places, call)
            return _unary(args[0], lambda x: numbers.rounded(x, places))
        case "truncate":
            places = _constant(call, 1)
            if kind.is_exact:
                return lambda frame: numbers.cut(args[0](frame), kind, places)
            return _unary(args[0], lambda x: numbers.truncated(x, places))
        case "floor" | "ceil":
            return lambda frame: numbers.whole(call, args[0](frame), kind, frame.rows)
        case "greatest" | "least":
            beats = _comparison(">" if name == "greatest" else "<", kind)
            return lambda frame: logic.best([a(frame) for a in args], beats, kind, frame.rows)
        case "checked":
            return _binary(args, lambda total, near: numbers.checked(total, near, call))
        case "only":
            return lambda frame: logic.only(args[0](frame), args[1](frame), _constant(call, 2))
        case "var_samp" | "var_pop":
            scale = call.args[1].type.scale
            return lambda frame: numbers.variance([a(frame) for a in args], scale, name == "var_samp")
        case "covar_samp" | "covar_pop":
            product = call.args[3].type.scale
            return lambda frame: numbers.covariance([a(frame) for a in args], product, name == "covar_samp")
        case "abs":
            return _signed(args[0], np.abs, call)
        case _ if name in COMPARISONS:
            return _binary(args, _comparison(name, kind))
        case "like":
            pattern, escape = _constant(call, 1), _constant(call, 2) if len(args) > 2 else None
            return _text(args[0], lambda x: _mask(texts.like(x, pattern, escape)))
        case "similar":
            pattern, escape = _constant(call, 1), _constant(call, 2) if len(args) > 2 else None
            return _text(args[0], lambda x: _mask(texts.similar(x, pattern, escape)))
        case "||":
            return lambda frame: _concat([a(frame) for a in args])
        case "substring":
            start, length = _constant(call, 1), _constant(call, 2) if len(args) > 2 else None
            return _text(args[0], lambda x: texts.substring(x, start, length))
        case "upper":
            return _text(args[0], texts.upper)
        case "lower":
            return _text(args[0], texts.lower)
        case "trim" | "ltrim" | "rtrim":
            trim, characters = (
                {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[name],
                _constant(call, 1),
            )
            return _text(args[0], lambda x: trim(x, characters))
        case "lpad" | "rpad":
            width, fill = _constant(call, 1), _constant(call, 2)
            return _text(args[0], lambda x: texts.pad(x, width, fill, name == "lpad"))
        case "replace":
            old, new = _constant(call, 1), _constant(call, 2)
            return _text(args[0], lambda x: pc.replace_substring(x, old, new) if old else x)
        case "repeat":
            times = _constant(call, 1)
            return _text(args[0], lambda x: texts.repeat(x, times))
        case "initcap":
            return _text(args[0], texts.initcap)
        case "translate":
            characters, others = _constant(call, 1), _constant(call, 2)
            return _text(args[0], lambda x: texts.translate(x, characters, others))
        case "concat_ws":
            separator = _constant(call, 0)
            return lambda frame: Vec(
                texts.between(separator, [full(a(frame), call.type, frame.rows) for a in args[1:]])
            )
        case "split_part":
            separator, position = _constant(call, 1), _constant(call, 2)
            return _text(args[0], lambda x: texts.part(x, separator, position))
        case "instr":
            sought = _constant(call, 1)
            return _text(args[0], lambda x: texts.place(x, sought))
        case "rlike":
            expression = _constant(call, 1)
            return _text(args[0], lambda x: _mask(texts.matching(pc.match_substring_regex, x, expression)))
        case "regexp_replace":
            expression, new = _constant(call, 1), texts.groups(_constant(call, 2))
            return _text(args[0], lambda x: texts.matching(pc.replace_substring_regex, x, expression, new))
        case "reverse":
            return _text(args[0], pc.utf8_reverse)
        case "startswith" | "endswith" | "contains":
            find = {"startswith": pc.starts_with, "endswith": pc.ends_with, "contains": pc.match_substring}[name]
            part = _constant(call, 1)
            return _text(args[0], lambda x: _mask(find(x, part)))
        case "ascii":
            return _text(args[0], texts.first_points)
        case "chr":
            return lambda frame: texts.characters(full(args[0](frame), kind, frame.rows))
        case "octets":
            return _text(args[0], lambda x: np.asarray(pc.fill_null(pc.binary_length(x), 0)).astype(np.int64))
        case "regexp_extract":
            expression, group = _constant(call, 1), _constant(call, 2)
            return _text(args[0], lambda x: texts.extracted(x, expression, group))
        case "regexp_count":
            expression = _constant(call, 1)
            return _text(args[0], lambda x: texts.times(x, expression))
        case "substring_index":
            separator, count = _constant(call, 1), _constant(call, 2)
            return _text(args[0], lambda x: texts.before(x, separator, count))
        case "digest":
            algorithm = _constant(call, 1)
            return _text(args[0], lambda x: hashes.of_each(x, lambda t: hashes.digest(t, algorithm), pa.string()))
        case "levenshtein":
            other = _constant(call, 1)
            return _text(args[0], _numbers(lambda text: hashes.distance(text, other)))
        case "crc32":
            return _text(args[0], _numbers(hashes.checksum))
        case "base64" | "hex" | "soundex":
            spell = {"base64": hashes.base64, "hex": hashes.hexadecimal, "soundex": hashes.soundex}[name]
            return _text(args[0], lambda x: hashes.of_each(x, spell, pa.string()))
        case "json_at":
            steps = json_paths.path(_constant(call, 1))
            return lambda frame: hashes.found(full(args[0](frame), kind, frame.rows), lambda t: json_paths.at(t, steps))
        case "hex_number":
            return lambda frame: hashes.digits(full(args[0](frame), kind, frame.rows))
        case "length":
            return _text(args[0], lambda x: np.asarray(pc.fill_null(pc.utf8_length(x), 0)).astype(np.int64))
        case _ if name.startswith("extract_"):
            part = name.removeprefix("extract_")
            return _unary(args[0], lambda x: dates.extract(part, x, kind))
        case "micros":
            return args[0]
        case "last_day":
            return _unary(args[0], lambda x: dates.last_day(x, kind))
        case "trunc":
            unit = _constant(call, 1)
            return _unary(args[0], lambda x: dates.truncate(unit, x, kind))
        case "trunc_time":
            return _binary(args, dates.moved(call, lambda x, size: x - np.mod(x, size)))
        case "add_months":
            return _binary(args, dates.moved(call, lambda x, months: dates.add_months(x, months, kind)))
        case "add_days" | "add_micros":
            return _binary(args, dates.moved(call, dates.add))
        case "days_between":
            return _binary(args, lambda a, b: Vec(np.subtract(a.values, b.values), both(a.valid, b.valid)))
    raise AssertionError(f"no evaluation for {name}")


def _arithmetic(call: Call) -> Callable[[Vec, Vec], Vec]:
    operate: Any = {"+": np.add, "-": np.subtract, "*": np.multiply}[call.name]
    if call.type.kind is Kind.DOUBLE:
        return numbers.real(operate)
    bound: Callable[[int, int], int] = (lambda x, y: x * y) if call.name == "*" else (lambda x, y: x + y)
    return numbers.exact(operate, bound, call)


def _comparison(name: str, type: Type) -> Callable[[Vec, Vec], Vec]:
    if type.kind is Kind.VARCHAR:
        return lambda a, b: Vec(_mask(texts.compare(name, a.values, b.values)), both(a.valid, b.valid))
    return numbers.compare(name, type.kind is Kind.DOUBLE)


def _constant(call: Call, position: int) -> Any:
    literal = constant(call.args[position])
    if literal is not None and literal.value is not None:
        return literal.value
    raise SquallError("SQ3001", f"{call.name.upper()} with a computed argument {position + 1} is not supported yet")


def _unary(arg: Function, operate: Callable[[Any], Any]) -> Function:
    def run(frame: Frame) -> Vec:
        vec = arg(frame)
        return Vec(operate(vec.values), vec.valid)

    return run


def _quietly(operate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """By IEEE rules, without warnings."""

    def run(values: Any) -> Any:
        with np.errstate(all="ignore"):
            return operate(np.float64(values) if np.ndim(values) == 0 else values)

    return run


def _signed(arg: Function, operate: Callable[[Any], Any], call: Call) -> Function:
    """Negation and absolute value, which the least integer does not have."""

    def run(frame: Frame) -> Vec:
        values, valid = vec = arg(frame)
        if call.type.is_exact and np.any(np.equal(numbers.masked(vec), -numbers.LIMIT)):
            if call.type.is_integer:
                raise numbers.overflow(call, call.type, numbers.LIMIT)
            values = np.asarray(values, object)
        return Vec(operate(values), valid)

    return run


def _binary(args: list[Function], operate: Callable[[Vec, Vec], Vec]) -> Function:
    left, right = args
    return lambda frame: operate(left(frame), right(frame))


def _text(arg: Function, operate: Callable[[Any], Any]) -> Function:
    def run(frame: Frame) -> Vec:
        vec = arg(frame)
        if isinstance(vec.values, str):
            return Vec(_single(operate(pa.array([vec.values]))), vec.valid)
        return Vec(operate(vec.values), vec.valid)

    return run


def _numbers(function: Callable[[str], int]) -> Callable[[Any], Any]:
    return lambda values: np.asarray(pc.fill_null(hashes.of_each(values, function, pa.int64()), 0))


def _single(result: Any) -> Any:
    return result[0].as_py() if isinstance(result, pa.Array) else result[0]


def _mask(result: Any) -> Any:
    """An Arrow boolean array (or scalar) as numpy; NULLs, whose validity is kept apart, as FALSE."""
    if isinstance(result, pa.Scalar):
        return bool(result.as_py())
    return np.asarray(pc.fill_null(result, False))


def _concat(parts: list[Vec]) -> Vec:
    return Vec(texts.concat([p.values for p in parts]), both(*(p.valid for p in parts)))
