"""Lambdas over elements of ARRAYs and entries of MAPs: the body is evaluated once for all elements of all rows.

'[1,2]', k = 10 and '[3]', k = 20 of (x, k) -> x + k   →   rows x 1, 2, 3 with k 10, 10, 20: 11, 12, 23
"""

from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.errors import SquallError
from squallpy.base.types import Type
from squallpy.logical.expressions import Call, Lambda
from squallpy.runtime.evaluate.evaluator_table import Evaluated, evaluator
from squallpy.runtime.evaluate.nested_elements import FlatElements, take_apart
from squallpy.runtime.evaluate.scalar.json import join_parts, write_json
from squallpy.runtime.evaluate.scalar.nested import check_keys
from squallpy.runtime.evaluate.series import positions_within
from squallpy.runtime.evaluate.text_column_casts import column_type, parse_texts
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid, from_arrow, full, take
from squallpy.runtime.kernels.memory_regions import Words

MOST_PAIRS = 20_000_000  # of elements that one batch compares


def _typed(texts: pa.Array, type: Type) -> Vec:
    return from_arrow(parse_texts(texts, type).cast(column_type(type)), type)


class _Applied:
    """A lambda and the arguments of the call that applies it, compiled.

    Args:
        before: how many arguments stand before those that are passed on to the lambda.
    """

    def __init__(self, call: Call, args: Evaluated, before: int) -> None:
        closed = call.args[-1]
        assert isinstance(closed, Lambda)
        self._body, self._type = args[-1], closed.body.type
        self._passed = list(zip(args[before:-1], (arg.type for arg in call.args[before:-1]), strict=True))
        own = len(closed.parameters) - len(self._passed)
        self.own, self._others = closed.parameters[:own], closed.parameters[own:]

    def passed(self, frame: VectorFrame) -> dict[int, Vec]:
        """Evaluate what the lambda reads besides elements, for each row, by the parameter."""
        named = zip(self._others, self._passed, strict=True)
        return {each.id: full(function(frame), type, frame.rows) for each, (function, type) in named}

    def __call__(self, given: list[Vec], passed: dict[int, Vec], rows: Words) -> Vec:
        """Evaluate the body for elements, each of a row."""
        columns = {p.id: vec for p, vec in zip(self.own, given, strict=False)}
        columns |= {id: take(vec, rows) for id, vec in passed.items()}
        return full(self._body(VectorFrame(len(rows), columns)), self._type, len(rows))

    def of_each(self, frame: VectorFrame, flat: FlatElements) -> Vec:
        """Evaluate the body for each element and its position, or for each key and value."""
        first = _typed(flat.values if flat.keys is None else flat.keys, self.own[0].type)
        given = [first]
        if len(self.own) > 1:
            given.append(Vec(flat.positions) if flat.keys is None else _typed(flat.values, self.own[1].type))
        return self(given, self.passed(frame), flat.rows)


def _over(
    of_map: bool, made: Callable[[FlatElements, Vec, int], Vec], with_parts: bool = False
) -> Callable[[Call, Evaluated], VectorFunction]:
    """Make an evaluator of what a lambda makes of the elements of each row."""

    def make(call: Call, args: Evaluated) -> VectorFunction:
        applied = _Applied(call, args, 1)

        def run(frame: VectorFrame) -> Vec:
            held = full(args[0](frame), call.args[0].type, frame.rows)
            flat = take_apart(*held, None if of_map else applied.own[0].type, with_parts)
            result = made(flat, applied.of_each(frame, flat), frame.rows)
            return Vec(result.values, all_valid(result.valid, held.valid))

        return run

    return make


def _filtered(brackets: str) -> Callable[[FlatElements, Vec, int], Vec]:
    def made(flat: FlatElements, kept: Vec, rows: int) -> Vec:
        assert flat.parts is not None
        chosen = _is_true(kept)
        parts = flat.parts.filter(pa.array(chosen))
        return Vec(join_parts(parts, np.bincount(flat.rows[chosen], minlength=rows), brackets))

    return made


def _is_true(vec: Vec) -> Any:
    return vec.values if vec.valid is None else vec.values & vec.valid


def _any(flat: FlatElements, found: Vec, rows: int) -> Vec:
    """Compute TRUE where an element has TRUE; NULL where none has, but one has NULL."""
    there = np.zeros(rows, np.bool_)
    there[flat.rows[_is_true(found)]] = True
    if found.valid is None:
        return Vec(there)
    known = np.ones(rows, np.bool_)
    known[flat.rows[~found.valid]] = False
    return Vec(there, known | there)


def _all(flat: FlatElements, found: Vec, rows: int) -> Vec:
    """Compute FALSE where an element has FALSE; NULL where none has, but one has NULL."""
    there, valid = _any(flat, Vec(~found.values, found.valid), rows)
    return Vec(~there, valid)


def _transformed(flat: FlatElements, made: Vec, rows: int) -> Vec:
    return Vec(join_parts(made.values, flat.counts, "[]"))


def _with_values(flat: FlatElements, made: Vec, rows: int) -> Vec:
    assert flat.keys is not None
    names = pa.array([write_json(key) for key in flat.keys.to_pylist()], pa.string())
    return Vec(join_parts(pc.binary_join_element_wise(names, made.values, ":"), flat.counts, "{}"))


def _with_keys(flat: FlatElements, made: Vec, rows: int) -> Vec:
    """Write entries with other keys; SQ5002 for one that is NULL or comes twice in a row."""
    assert flat.keys is not None and flat.parts is not None
    keys = (made.values if made.valid is None else pc.if_else(pa.array(made.valid), made.values, None)).to_pylist()
    check_keys(zip(flat.rows.tolist(), keys, strict=True))
    old = zip(flat.keys.to_pylist(), flat.parts.to_pylist(), strict=True)
    values = [part[len(write_json(key)) :] for key, part in old]
    entries = [write_json(key) + value for key, value in zip(keys, values, strict=True)]
    return Vec(join_parts(pa.array(entries, pa.string()), flat.counts, "{}"))


evaluator("array_transform")(_over(False, _transformed))
evaluator("array_filter")(_over(False, _filtered("[]"), with_parts=True))
evaluator("array_exists")(_over(False, _any))
evaluator("array_forall")(_over(False, _all))
evaluator("map_filter")(_over(True, _filtered("{}"), with_parts=True))
evaluator("map_transform_values")(_over(True, _with_values))
evaluator("map_transform_keys")(_over(True, _with_keys, with_parts=True))


@evaluator("array_fold")
def array_fold(call: Call, args: Evaluated) -> VectorFunction:
    """Evaluate AGGREGATE: the lambda is applied to the first elements of all rows, then to the second ones …"""
    applied = _Applied(call, args, 2)

    def run(frame: VectorFrame) -> Vec:
        held = full(args[0](frame), call.args[0].type, frame.rows)
        flat, passed = take_apart(*held, applied.own[1].type), applied.passed(frame)
        elements = _typed(flat.values, applied.own[1].type)
        first = np.cumsum(flat.counts) - flat.counts
        so_far = full(args[1](frame), call.type, frame.rows)
        for number in range(int(flat.counts.max(initial=0))):
            rows = np.flatnonzero(flat.counts > number)
            made = applied([take(so_far, rows), take(elements, first[rows] + number)], passed, rows)
            so_far = _put(so_far, made, rows)
        return Vec(so_far.values, all_valid(so_far.valid, held.valid))

    return run


@evaluator("array_sorted_by")
def array_sorted_by(call: Call, args: Evaluated) -> VectorFunction:
    """Evaluate ARRAY_SORT by a lambda: it is asked of all pairs of elements of a row at once, then each row is sorted.

    Raises:
        SquallError: SQ5001 for a batch with too many pairs, SQ5002 where the lambda says NULL.
    """
    applied = _Applied(call, args, 1)

    def run(frame: VectorFrame) -> Vec:
        held = full(args[0](frame), call.args[0].type, frame.rows)
        flat = take_apart(*held, applied.own[0].type, with_parts=True)
        assert flat.parts is not None
        elements, first = _typed(flat.values, applied.own[0].type), np.cumsum(flat.counts) - flat.counts
        pairs = int((flat.counts * flat.counts).sum())
        if pairs > MOST_PAIRS:
            message = (
                f"ARRAY_SORT compares {pairs:,} pairs of elements in one batch, at most {MOST_PAIRS:,} are allowed"
            )
            raise SquallError("SQ5001", message, hint="sort by fields, or use smaller batches")
        left = np.repeat(np.arange(len(flat.rows)), flat.counts[flat.rows])
        right = first[flat.rows[left]] + positions_within(flat.counts[flat.rows])
        said = applied([take(elements, left), take(elements, right)], applied.passed(frame), flat.rows[left])
        if said.valid is not None and not said.valid.all():
            raise SquallError("SQ5002", "a comparison of ARRAY_SORT is NULL", hint="say 0 for elements that are alike")
        order, signs = np.arange(len(flat.rows)), np.asarray(said.values)
        starts = np.cumsum(flat.counts[flat.rows]) - flat.counts[flat.rows]  # of each element's pairs
        for row in np.flatnonzero(flat.counts > 1):
            begin, count = first[row], flat.counts[row]
            table = signs[starts[begin] : starts[begin] + count * count].reshape(count, count).tolist()
            order[begin : begin + count] = begin + np.array(
                sorted(range(count), key=cmp_to_key(lambda a, b, table=table: table[a][b]))  # type: ignore[misc]
            )
        return Vec(join_parts(flat.parts.take(pa.array(order)), flat.counts, "[]"), held.valid)

    return run


def _put(vec: Vec, new: Vec, rows: Words) -> Vec:
    """Replace the values of some rows."""
    valid = None
    if vec.valid is not None or new.valid is not None:
        valid = np.ones(len(vec.values), np.bool_) if vec.valid is None else vec.valid.copy()
        valid[rows] = True if new.valid is None else new.valid
    if isinstance(vec.values, np.ndarray):
        values = np.array(vec.values, np.result_type(vec.values, new.values))
        values[rows] = new.values
        return Vec(values, valid)
    chosen = np.arange(len(vec.values))
    chosen[rows] = len(vec.values) + np.arange(len(rows))
    return Vec(pa.concat_arrays([vec.values, new.values]).take(pa.array(chosen)), valid)
