"""Printed columns of the result view's keys and payloads: measures, HAVING, the SELECT list, ORDER BY."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.base.keys import is_plain
from squallpy.base.rings import Ring
from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import Column, columns
from squallpy.physical.plan import PoolPlan
from squallpy.program.output_spec import Measure, OutputSpec
from squallpy.runtime.evaluate.exact_arithmetic import LIMIT, first_chosen, largest_magnitude, overflow_error
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.moments import two_sum
from squallpy.runtime.evaluate.sort_keys import ordinals
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, arrow_type, full, take, to_arrow
from squallpy.runtime.formats.text_columns import NESTED
from squallpy.runtime.kernels import first_groups
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.payload_columns import unpack
from squallpy.runtime.messages.deltas import decode

NO_TEXTS: Mapping[int, Vec] = MappingProxyType({})
_Terms = tuple[tuple[int, int], ...]  # coefficients and lanes of a sum


def _printed_field(name: str, type: Type) -> pa.Field:
    """Describe a printed column; a nested one is its JSON, with its code for those who write it otherwise."""
    return pa.field(name, arrow_type(type), metadata={NESTED: type.code} if type.nested else None)


class GroupFrame(VectorFrame):
    """Groups as a frame: key columns and measures; `pick` selects groups."""

    def __init__(self, keys: Words, load: Callable[[int], Vec], pick: Callable[[Words], "GroupFrame"]) -> None:
        super().__init__(len(keys), {}, load)
        self.keys, self.pick = keys, pick


class Printer:
    """The conversion of keys and payloads to printed columns."""

    def __init__(self, output: OutputSpec, pool: PoolPlan) -> None:
        self._output, self._keys, self._payload = output, pool.keys, pool.payload
        self._having = None if output.having is None else compile_expression(output.having)
        self._times = None if output.times is None else compile_expression(output.times)
        self._items = [(compile_expression(e), e.type) for _, e in output.items]
        self._order = [(compile_expression(e), e.type, down, nulls) for e, down, nulls in output.order]
        self._by_keys = [(compile_expression(key), key.type, False, False) for key in pool.keys]
        self._places = {key.id: place for place, key in enumerate(pool.keys)}
        self._measures = {m.column.id: m for m in output.measures}
        self._measured = {i for i, (_, e) in enumerate(output.items) if any(c.id in self._measures for c in columns(e))}
        self.schema = pa.schema([_printed_field(name, e.type) for name, e in output.items])
        self.in_key_order = _in_key_order(output, pool)
        self.first_order = _first_order(output, pool)

    def frame(self, keys: Words, words: Words, names: Dictionary, texts: Mapping[int, Vec] = NO_TEXTS) -> GroupFrame:
        """Build the frame of key columns and measures.

        Args:
            texts: Key columns that are decoded already, by place.
        """
        sums = dict[_Terms, Any]()

        def total(terms: _Terms) -> Any:
            if terms not in sums:  # NB: measures are often over the same rows
                sums[terms] = self._sum(terms, words)
            return sums[terms]

        def load(id: int) -> Vec:
            if (place := self._places.get(id)) is not None:
                if place in texts:
                    return texts[place]
                return decode(np.ascontiguousarray(keys[:, place]), self._keys[place], names)
            return self._measure(self._measures[id], total, words)

        def pick(rows: Words) -> GroupFrame:
            some = {place: take(vec, rows) for place, vec in texts.items()} if texts else NO_TEXTS
            return self.frame(keys.take(rows, axis=0), words.take(rows, axis=0), names, some)

        return GroupFrame(keys, load, pick)

    def count(self, words: Words) -> Words:
        """Read the number of rows of each group."""
        return np.asarray(words[:, self._payload.offsets[self._output.count]])

    def present(self, measure: Measure, words: Words) -> Any:
        """Count the rows of each group whose value is not NULL."""
        return self._sum(measure.present, words)

    def times(self, frame: VectorFrame, words: Words) -> Words:
        """Compute how often each row is printed: its multiplicity, or once where its group exists and HAVING is
        TRUE."""
        count = self.count(words)
        if self._output.repeat:
            return np.maximum(count, 0)
        shown: Any = count != 0
        if self._output.single:  # NB: one row, unless LIMIT or OFFSET cut it off
            shown = np.full(len(count), self._output.limit != 0 and not self._output.offset)
        if self._having is not None:
            shown = np.logical_and(shown, is_true(self._having(frame)))
        if self._times is not None:
            shown = shown * np.maximum(self._times(frame).values, 0)
        return np.asarray(shown).astype(np.int64)

    def item(self, name: str, frame: VectorFrame) -> Vec:
        """Compute a printed column."""
        function, type = self._items[self.schema.get_field_index(name)]
        return full(function(frame), type, frame.rows)

    def table(self, frame: VectorFrame) -> pa.Table:
        """Print the rows of a frame."""
        return self._printed([full(f(frame), type, frame.rows) for f, type in self._items])

    def changes(self, frame: GroupFrame, gone: Words, come: Words) -> tuple[pa.Table, pa.Table]:
        """Print the rows that went and that came.

        The frame has the groups as they were in its first half and as they are in the second; `gone` and `come` count
        how often each was and is printed. Items of keys alone are computed only for printed rows.
        """
        items = list(enumerate(self._items))
        measured: dict[int, Vec] = {}
        same = np.ones(len(gone), bool)
        for i, (f, type) in items:
            if i in self._measured and same.any():
                measured[i] = full(f(frame), type, frame.rows)
                same &= _equal_halves(measured[i], len(gone))
        kept = np.where(same, np.minimum(gone, come), 0)
        rows = np.repeat(np.arange(frame.rows), np.concatenate([gone - kept, come - kept]))
        some = frame.pick(rows)
        table = self._printed(
            [take(measured[i], rows) if i in measured else full(f(some), type, some.rows) for i, (f, type) in items]
        )
        cut = int((gone - kept).sum())
        return table.slice(0, cut), table.slice(cut)

    def _printed(self, items: list[Vec]) -> pa.Table:
        columns = [to_arrow(vec, type, len(vec.values)) for vec, (_, type) in zip(items, self._items, strict=True)]
        return pa.Table.from_arrays(columns, schema=self.schema)

    def up_to_last(self, frame: GroupFrame) -> Any:
        """Mark rows that sort before or with the last by ORDER BY: a filter before the sort."""
        chosen, tied = np.zeros(frame.rows, bool), np.arange(frame.rows)
        for function, type, down, nulls_first in self._order:
            compared = frame if len(tied) == frame.rows else frame.pick(tied)
            still = np.ones(len(tied), bool)
            for rank in _ranks(
                full(function(compared), type, compared.rows), type, down, nulls_first, _compare_with_last
            ):
                chosen[tied[still & (rank < rank[-1])]] = True
                still &= rank == rank[-1]
            tied = tied[still]
            if len(tied) == 1:
                break
        chosen[tied] = True
        return chosen

    def sort_rows(self, frame: GroupFrame, rows: Words) -> Words:
        """Sort `rows` by ORDER BY, then by their keys, so that equal rows have one order too.

        Only rows that the first column leaves tied are compared further.
        """
        rows, tied = rows.copy(), np.arange(len(rows))
        label = np.zeros(len(rows), np.int64)  # numbers of groups that are equal in the keys so far
        for some_columns in (self._order[:1], self._order[1:], self._by_keys):
            if len(tied) < 2:
                break
            sorted_rows, ranks = rows[tied], list[Any]()
            compared = frame.pick(sorted_rows) if len(sorted_rows) < frame.rows else frame
            for function, type, down, nulls_first in some_columns:
                vec = full(function(compared), type, compared.rows)
                ranks += _ranks(vec if compared is not frame else take(vec, sorted_rows), type, down, nulls_first)
            moved = np.lexsort([*ranks[::-1], label])
            rows[tied] = sorted_rows = sorted_rows[moved]
            differs = label[1:] != label[:-1]
            for rank in ranks:
                rank = rank[moved]
                differs |= rank[1:] != rank[:-1]
            equal = np.flatnonzero(~differs)
            equal = equal[sorted_rows[equal] != sorted_rows[equal + 1]]  # not one row, printed several times
            if not len(equal):
                break
            label = np.append(0, differs).cumsum()
            unresolved = np.zeros(len(label), bool)
            unresolved[label[equal]] = True
            tied, label = tied[unresolved[label]], label[unresolved[label]]
        return rows

    def _sum(self, terms: _Terms, words: Words) -> Any:
        """Compute Σ coefficient · lane."""
        total: Any = None
        for coefficient, lane in terms:
            at, ring = self._payload.offsets[lane], self._payload.rings[lane]
            assert isinstance(ring, Ring)
            values: Any = unpack(words[:, at : at + ring.words], ring)
            if len(terms) == 1 and coefficient == 1:
                return values
            if values.dtype == np.int64 and largest_magnitude(values) * (abs(coefficient) + 1) * len(terms) >= LIMIT:
                values = values.astype(object)
            part = values if coefficient == 1 else values * coefficient
            with np.errstate(invalid="ignore"):  # ∞ − ∞
                total = part if total is None else total + part
        return np.zeros(len(words), np.int64) if total is None else total

    def _rest(self, terms: _Terms, total: Any, words: Words) -> Any:
        """Compute what rounding took from a sum of doubles, which lanes hold in two words."""
        high, low = np.zeros(len(words)), np.zeros(len(words))
        with np.errstate(invalid="ignore"):
            for coefficient, lane in terms:
                at = self._payload.offsets[lane]
                held = np.ascontiguousarray(words[:, at : at + 2]).view(np.float64)
                high, lost = two_sum(high, coefficient * held[:, 0])
                low += lost + coefficient * held[:, 1]
            rest = (high - total) + low
        return np.where(np.isfinite(rest), rest, 0.0)

    def _measure(self, measure: Measure, total: Callable[[_Terms], Any], words: Words) -> Vec:
        count = total(measure.present)
        if measure.function == "count":
            return Vec(count)
        value, valid = total(measure.value), count != 0
        if measure.function == "avg":
            with np.errstate(all="ignore"):
                mean = np.asarray(value / np.where(valid, count, 1), np.float64) / 10.0**measure.scale
            return Vec(mean, valid)
        if measure.function == "sum_rest":
            return Vec(self._rest(measure.value, value, words), valid)
        return Vec(_check_range(value, measure.column), valid)


def _first_order(output: OutputSpec, pool: PoolPlan) -> Words:
    """Tell which words of groups have the order of the first expression of ORDER BY (`first_groups`).

    It is an exact sum, a count, or a key, or there are none.
    """
    words = np.zeros(first_groups.ORDER, np.int64)
    expr, down, _ = output.order[0] if output.order else (None, False, False)
    if not isinstance(expr, Column):
        return words
    column, merges = expr, output.having is None and output.times is None
    rows = (pool.payload.offsets[output.count], output.repeat, merges)
    places = {key.id: place for place, key in enumerate(pool.keys)}
    if (place := places.get(expr.id)) is not None:
        if is_plain(expr.type):
            words[: first_groups.BARRED] = first_groups.OF_KEY, down, place, 0, *rows
        return words
    measure = next((m for m in output.measures if m.column.id == column.id), None)
    if measure is None or measure.function not in ("sum", "count") or not _is_lane(measure, pool):
        return words
    ((_, lane),), ((_, present),) = measure.value, measure.present or measure.value
    kind = first_groups.OF_SUM if pool.payload.rings[lane] is Ring.EXACT else first_groups.OF_WORD
    at = pool.payload.offsets
    words[: first_groups.BARRED] = kind, down, at[lane], at[present], *rows
    return words


def _is_lane(measure: Measure, pool: PoolPlan) -> bool:
    """True if a measure is a lane of exact sums or counts, with the count of what is not NULL."""
    rings = pool.payload.rings
    sums = (measure.value, measure.present or measure.value)
    return all(len(terms) == 1 and terms[0][0] == 1 for terms in sums) and all(
        rings[terms[0][1]] in (Ring.COUNT, Ring.EXACT) for terms in sums
    )


def _in_key_order(output: OutputSpec, pool: PoolPlan) -> bool:
    """True if the order of groups follows from their keys alone."""
    left, measures = {key.id for key in pool.keys}, {m.column.id for m in output.measures}
    for expr, _, _ in output.order:
        if left and any(c.id in measures for c in columns(expr)):
            return False
        if isinstance(expr, Column):
            left.discard(expr.id)
    return True


def _ranks(
    vec: Vec, type: Type, down: bool, nulls_first: bool, sort_rows: Callable[[Vec, Type], Any] = ordinals
) -> list[Any]:
    """List the sort keys of a column, the most significant first."""
    rank = ~sort_rows(vec, type) if down else sort_rows(vec, type)
    if vec.valid is None:
        return [rank]
    return [vec.valid if nulls_first else ~vec.valid, np.where(vec.valid, rank, 0)]


def _compare_with_last(vec: Vec, type: Type) -> Any:
    """Compare values with the last one: like `ordinals`, but texts need not be sorted."""
    if type.kind is not Kind.VARCHAR:
        return ordinals(vec, type)
    values = pc.fill_null(vec.values, "") if vec.values.null_count else vec.values
    more, less = np.asarray(pc.greater(values, values[-1])), np.asarray(pc.less(values, values[-1]))
    return more.astype(np.int64) - less


def _equal_halves(vec: Vec, half: int) -> Any:
    """Mark the values of the first half that equal those of the second; NULL equals NULL, and NaN equals NaN."""
    values, valid = vec
    if isinstance(values, pa.Array | pa.ChunkedArray):
        equal = np.asarray(pc.fill_null(pc.equal(values.slice(0, half), values.slice(half)), False))
    else:
        above, below = values[:half], values[half:]
        equal = np.asarray(above == below, bool)
        if values.dtype == np.float64:
            equal |= np.isnan(above) & np.isnan(below)
    if valid is None:
        return equal
    return np.where(valid[:half], equal & valid[half:], ~valid[half:])


def _check_range(total: Any, column: Column) -> Any:
    """Check that a sum is in the range of its type."""
    type = column.type
    if total.dtype != object:
        return total
    least, end = (1 - 10**38, 10**38) if type.kind is Kind.DECIMAL else (-LIMIT, LIMIT)
    if np.any(wrong := (total < least) | (total >= end)):
        raise overflow_error(column, type, first_chosen(total, wrong))
    return total if type.kind is Kind.DECIMAL else total.astype(np.int64)
