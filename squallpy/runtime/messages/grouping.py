"""Grouping of a batch into a delta: predicates, keys and lanes are evaluated, and equal keys added up (§3.3).

A program evaluates record batches in one call where all that it computes fits 64 bits; vectors do everything.
"""

from collections.abc import Callable
from functools import reduce
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.base.keys import NULL, least_as_held
from squallpy.base.rings import Cofactor, Payload, Ring
from squallpy.base.types import BIGINT, DOUBLE, Kind, Type
from squallpy.catalog.relation import MULT
from squallpy.logical.expressions import Cast, Column, Expr, columns, conjunction, substitute
from squallpy.program.calculus import Assign, Cmp, Lane, lifted, ring
from squallpy.program.views import View
from squallpy.runtime.compiled.functions import CompiledGroup
from squallpy.runtime.evaluate.casts import cast
from squallpy.runtime.evaluate.exact_arithmetic import LIMIT, largest_magnitude
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.kernel_programs import NotCompilable, ProgramBuilder
from squallpy.runtime.evaluate.kernel_runner import ExportedBatch, Runner
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, all_valid, full, take
from squallpy.runtime.kernels.cofactor_lifting import lift_rows
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_columns import fill_reals, pack
from squallpy.runtime.kernels.payload_sums import sum_payloads
from squallpy.runtime.kernels.pool import Pool
from squallpy.runtime.messages.deltas import encode

_NO_LIFTING = np.empty(0, np.int64)
_TIMES = Column(-1, MULT, BIGINT, nullable=False)


class Grouping:
    """One delta: evaluates its predicates, keys and lanes, and adds up equal keys in a scratch pool.

    Args:
        adds_up: Otherwise equal keys stay rows of their own, for a delta whose rows travel.
        compiled: A function that does it to a batch, if it can.
    """

    def __init__(
        self, delta: View, payload: Payload, adds_up: bool = True, compiled: CompiledGroup | None = None
    ) -> None:
        (term,) = delta.terms
        (atom,) = term.atoms
        self.name, self._keys, self._compiled = delta.name, delta.keys, compiled
        self._fields = {v.id: name for name, v in atom.fields}
        steps = [f for f in term.body if isinstance(f, Assign | Cmp)]
        assigned = {f.variable.id for f in steps if isinstance(f, Assign)}
        early = [f for f in steps if isinstance(f, Cmp) and not any(c.id in assigned for c in columns(f.predicate))]
        late = _ordered([f for f in steps if f not in early])
        ordered = [*early, *late]
        self._early = compile_expression(conjunction(f.predicate for f in early))  # before anything is copied
        self._late: list[tuple[Column | None, VectorFunction]] = [
            (f.variable, compile_expression(f.value))
            if isinstance(f, Assign)
            else (None, compile_expression(f.predicate))
            for f in late
        ]
        self._payload = payload
        lanes = [lane for lane in term.lanes if lane is not None]
        self._factors = [_factors(lane) for lane in lanes]
        self._scratch, self._adds_up = Pool(len(delta.keys), self._payload), adds_up
        is_exact = all(kind in (Ring.COUNT, Ring.EXACT) for kind in payload.rings)
        self._is_sum = is_exact and adds_up and not delta.keys
        self.is_of_fields = (
            is_exact and not any(lanes) and not steps and all(key.id in self._fields for key in delta.keys)
        )
        """True if keys are fields, and lanes count rows."""
        has_lifts = any(isinstance(kind, Cofactor) for kind in payload.rings)
        self._liftings = [lifting_of(payload, counted) if has_lifts else None for counted in (False, True)]
        self._runners = [self._runner(ordered, lanes, counted) for counted in (False, True)]
        values: dict[int, Expr] = {}
        for step in ordered:
            if isinstance(step, Assign):
                values[step.variable.id] = substitute(step.value, values)
        self._origins = [values.get(key.id, key) for key in delta.keys]
        self._texts = [
            (i, key, compile_expression(origin))
            for i, (key, origin) in enumerate(zip(delta.keys, self._origins, strict=True))
            if key.type.kind is Kind.VARCHAR
        ]

    def __call__(
        self,
        rows: int,
        read: Callable[[str], Vec],
        mult: Words | None,
        names: Dictionary,
        batch: ExportedBatch | None = None,
    ) -> tuple[Words, Words]:
        """Compute keys and payloads of `rows` tuples, which hold until the next call; `read` gives fields.

        `batch`: they are those of a record batch.
        """
        if batch and self._compiled and self._adds_up:
            self._scratch.clear()
            if self._compiled(batch, self._scratch, names):
                return self._scratch.rows()
        if self._is_sum and rows > 1:
            total = np.zeros((1, self._payload.width), np.int64)
            if self._run(rows, read, mult, names, batch, total[0]):
                return _sum_of_all(total)
        found, lifting = self._run(rows, read, mult, names, batch), self._liftings[mult is not None]
        if not self._adds_up:
            return found or self._evaluate(rows, read, mult, names)
        if not found or lifting is None:
            return self._add_up(*(found or self._evaluate(rows, read, mult, names)))
        self._scratch.clear()
        self._scratch.upsert_lifted(*found, lifting)
        return self._scratch.rows()

    def program(self, counted: bool) -> tuple[Runner, Words] | None:
        """Return the program that makes keys and payloads of rows, and how these are lifted; None if there is more to
        do.

        Args:
            counted: Rows have multiplicities.
        """
        runner, lifting = self._runners[counted], self._liftings[counted]
        if runner is None or not runner.is_whole or self._texts or self._is_sum or not self._adds_up:
            return None
        return runner, _NO_LIFTING if lifting is None else lifting

    def of_keys(self, field: Callable[[str], Words], times: Words, distinct: int = 0) -> tuple[Words, Words]:
        """Aggregate rows, given by their fields as keys and how often they are there; it has to be `is_of_fields`.

        Args:
            distinct: The number of fields, if no two rows agree on all of them.
        """
        keys = np.empty((len(times), len(self._keys)), np.int64)
        for i, key in enumerate(self._keys):
            keys[:, i] = field(self._fields[key.id])
        words = np.zeros((len(times), self._payload.width), np.int64)
        for at, kind in zip(self._payload.offsets, self._payload.rings, strict=True):
            assert isinstance(kind, Ring)
            _fill(words, at, kind, None, times)
        if distinct and len({self._fields[key.id] for key in self._keys}) == distinct:
            return keys, words
        return self._add_up(keys, words)

    def _add_up(self, keys: Words, words: Words) -> tuple[Words, Words]:
        """Add up the payloads of equal keys; without keys, all are one group."""
        if not self._keys and len(words) > 1:
            total = np.zeros((1, self._payload.width), np.int64)
            if sum_payloads(self._scratch.frame, words, total[0]):
                return _sum_of_all(total)
        self._scratch.clear()
        self._scratch.upsert(keys, words)
        return self._scratch.rows()

    def _runner(self, steps: list[Assign | Cmp], lanes: list[Lane], counted: bool) -> Runner | None:
        """Make the program for batches with or without multiplicities."""
        if any(kind in (Ring.REAL, Ring.SIGNED) for kind in self._payload.rings):
            return None
        coder, at = ProgramBuilder(self._fields | {_TIMES.id: MULT}), 0
        try:
            for _, run in groupby(steps, type):
                some = list(run)
                coder.filter([step.predicate for step in some if isinstance(step, Cmp)])
                for step in some:
                    if isinstance(step, Assign):
                        coder.assign(step.variable, step.value)
            for i, key in enumerate(self._keys):
                if key.type.kind is not Kind.VARCHAR:
                    coder.key(i, key, NULL if key.type.kind is Kind.DOUBLE else least_as_held(key.type))
            for lane, kind in zip(lanes, self._payload.rings, strict=True):
                if isinstance(kind, Cofactor):
                    for value in _values_of(lane):
                        coder.word(at, Cast(value, DOUBLE))
                        at += 1
                else:
                    coder.lane(at, kind.words, lane, _TIMES if counted else None)
                    at += kind.words
            if counted and self._liftings[counted] is not None:
                coder.word(at, _TIMES)
                at += 1
        except NotCompilable:
            return None
        return Runner(coder.program(), self._scratch.key_width, at)

    def _run(
        self,
        rows: int,
        read: Callable[[str], Vec],
        mult: Words | None,
        names: Dictionary,
        batch: ExportedBatch | None,
        sums: Words | None = None,
    ) -> tuple[Words, Words] | None:
        """Run the program over the rows; keys that are texts are numbered here.

        Args:
            sums: Gets the sum of all payloads instead.
        """
        runner = self._runners[mult is not None]
        if runner is None:
            return None
        if batch:
            found = runner.over_batch(batch, lambda: self._frame(rows, read, None), sums)
        else:
            found = runner.over_vectors(
                rows,
                lambda name: Vec(mult) if name == MULT else read(name),
                lambda: self._frame(rows, read, None),
                sums,
            )
        if found is None:
            return None
        keys, words, kept = found
        if self._texts:
            frame = self._frame(len(kept), read, None if len(kept) == rows else kept)
            for i, key, function in self._texts:
                keys[:, i] = encode(function(frame), key, len(kept), names)
        return keys, words

    def _frame(
        self, rows: int, read: Callable[[str], Vec], chosen: Any, columns: dict[int, Vec] | None = None
    ) -> VectorFrame:
        """Read fields of chosen rows (None: of all), and columns that are there."""

        def load(id: int) -> Vec:
            vec = read(self._fields[id])
            return vec if chosen is None else take(vec, chosen)

        return VectorFrame(rows, columns or {}, load)

    def _evaluate(
        self, rows: int, read: Callable[[str], Vec], mult: Words | None, names: Dictionary
    ) -> tuple[Words, Words]:
        chosen: Any = None
        frame = self._frame(rows, read, None)
        mask = is_true(self._early(frame))
        if not np.all(mask):
            chosen = np.flatnonzero(np.broadcast_to(mask, rows))
            rows = len(chosen)
            frame = self._frame(rows, read, chosen)
            mult = None if mult is None else mult[chosen]
        for variable, function in self._late:
            if variable is not None:
                frame._columns[variable.id] = function(frame)
                continue
            kept = np.flatnonzero(np.broadcast_to(is_true(function(frame)), rows))
            if len(kept) < rows:
                chosen = kept if chosen is None else chosen[kept]
                rows = len(kept)
                frame = self._frame(rows, read, chosen, {id: take(vec, kept) for id, vec in frame._columns.items()})
                mult = None if mult is None else mult[kept]
        keys = np.empty((rows, len(self._keys)), np.int64)
        for i, (key, origin) in enumerate(zip(self._keys, self._origins, strict=True)):
            keys[:, i] = encode(frame[key.id], key, rows, names, origin)
        words = np.empty((rows, self._payload.width), np.int64)
        for product, at, kind in zip(self._factors, self._payload.offsets, self._payload.rings, strict=True):
            if isinstance(kind, Cofactor):
                lift_rows(words, at, kind, product(frame), mult)
            elif kind >= Ring.REAL:
                values, times = product(frame)
                fill_reals(words, at, kind, values, mult if times is None else times if mult is None else times * mult)
            else:
                _fill(words, at, kind, product(frame), mult)
        return keys, words


def _sum_of_all(total: Words) -> tuple[Words, Words]:
    """Return the one group of rows without keys, unless its payload is zero."""
    count = 1 if total.any() else 0
    return np.empty((count, 0), np.int64), total[:count]


def lifting_of(payload: Payload, is_counted: bool) -> Words:
    """Encode how payloads are made of rows: values to be lifted, words of other lanes, and at last multiplicities."""
    lanes, at = list[int](), 0
    for offset, kind in zip(payload.offsets, payload.rings, strict=True):
        if isinstance(kind, Cofactor):
            lanes += [offset, kind.code, kind.first, at]
            at += kind.size
        else:
            lanes += [offset, kind.words, 0, at]
            at += kind.words
    return np.array([at if is_counted else -1, *lanes], np.int64)


def _ordered(steps: list[Assign | Cmp]) -> list[Assign | Cmp]:
    """Order assignments before their readers."""
    done: list[Assign | Cmp] = []
    left = list(steps)
    names = {f.variable.id for f in steps if isinstance(f, Assign)}
    while left:
        known = {f.variable.id for f in done if isinstance(f, Assign)}
        waiting = names - known
        free = [
            f
            for f in left
            if not any(c.id in waiting for c in columns(f.value if isinstance(f, Assign) else f.predicate))
        ]
        assert free, "assignments in a circle"
        done += free
        left = [f for f in left if f not in free]
    return done


def _factors(lane: Lane) -> Callable[[VectorFrame], Any]:
    if isinstance(ring(lane), Cofactor):
        return _lifted_values(lane)
    return _real_product(lane) if ring(lane) is Ring.REAL else _product(lane)


def _values_of(lane: Lane) -> list[Expr]:
    """List the values that a lane lifts, by the numbers of their variables."""
    found = sorted(filter(None, map(lifted, lane)), key=lambda pair: pair[1])
    assert len(found) == len(lane), "a lane lifts all of its factors, or none"
    return [value for value, _ in found]


def _lifted_values(lane: Lane) -> Callable[[VectorFrame], npt.NDArray[np.float64]]:
    """Evaluate the values that a lane lifts, as doubles, a row for each variable."""
    functions = [(compile_expression(value), value) for value in _values_of(lane)]

    def run(frame: VectorFrame) -> npt.NDArray[np.float64]:
        return np.array([as_doubles(f(frame), value, frame.rows) for f, value in functions])

    return run


def _product(lane: Lane) -> Callable[[VectorFrame], Any]:
    """Multiply a lane's factors, NULL counting as 0; None stands for 1."""
    functions = [(compile_expression(f), f.type) for f in lane]

    def run(frame: VectorFrame) -> Any:
        values = [number(f(frame), type, frame.rows) for f, type in functions]
        return reduce(multiply, values) if values else None

    return run


def _real_product(lane: Lane) -> Callable[[VectorFrame], tuple[Any, Words | None]]:
    """Multiply a lane's factors as doubles, and find how often each product counts (None: once).

    It counts 0 times if a factor is NULL or FALSE, which is not the same as a product with 0, for that may be NaN.
    """
    functions = [(compile_expression(f), f.type) for f in lane]

    def run(frame: VectorFrame) -> tuple[Any, Words | None]:
        product, counts = np.float64(1.0), None
        for function, type in functions:
            vec = full(function(frame), type, frame.rows)
            counts = all_valid(counts, vec.valid, vec.values if type.kind is Kind.BOOLEAN else None)
            if type.kind is not Kind.BOOLEAN:
                with np.errstate(all="ignore"):  # what stands at a NULL is arbitrary
                    product = product * vec.values
        return product, None if counts is None else counts.astype(np.int64)

    return run


def as_doubles(vec: Vec, value: Expr, rows: int) -> npt.NDArray[np.float64]:
    """Convert the numbers of an expression to doubles: 5.25, which is 525 as a DECIMAL   →   5.25"""
    doubles: npt.NDArray[np.float64] = full(cast(vec, value.type, DOUBLE, rows, value), DOUBLE, rows).values
    return doubles


def number(vec: Vec, type: Type, rows: int) -> Any:
    """Convert a factor to plain numbers: NULL is 0, TRUE is 1."""
    values, valid = full(vec, type, rows)
    if values.dtype == bool:
        return (values if valid is None else values & valid).astype(np.int64)
    return values if valid is None else np.where(valid, values, 0)


def multiply(a: Any, b: Any) -> Any:
    if a.dtype.kind == b.dtype.kind == "i" and largest_magnitude(a) * largest_magnitude(b) >= LIMIT:
        return a.astype(object) * b
    return a * b


def _fill(words: Words, at: int, ring: Ring, values: Any, mult: Words | None) -> None:
    """Fill a COUNT or EXACT lane with values times multiplicities; None stands for 1."""
    if values is None:
        values = 1 if mult is None else mult
    elif mult is not None:
        values = multiply(values, mult)
    if np.asarray(values).dtype.kind == "O":
        words[:, at : at + ring.words] = pack(values, ring)
    else:
        words[:, at] = values
        if ring is Ring.EXACT:
            words[:, at + 1] = np.right_shift(values, 63)
