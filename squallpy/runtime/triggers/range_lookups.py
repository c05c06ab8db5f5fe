"""Ranges at work: from predicates over one variable of a sorted index to the records, or the sums, of its ranges.

ΔN1(t) = {(8): −1, (9): +1} ⋈ M_CUSTOMER(c, balance) ⋈ (balance > t)
→   balance > 8 taken away and balance > 9 added, hence 8 < balance <= 9 taken away: overlaps are not looked up

A predicate that compares the variable, or a sum with it (`isolate`), gives its bound at once. Of others it is known
that they stay TRUE as the variable grows (or falls), so the bound is found by bisection between the values that the
index has: exact, whatever they compute and however they round. Where one compares a CAST of the variable, that
bisection knows where to begin.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from squallpy.base.keys import NULL, least_in_order
from squallpy.base.types import Type
from squallpy.logical.expressions import (
    TRUE,
    Call,
    Cast,
    Column,
    Expr,
    are_stored_alike,
    columns,
    conjuncts,
    is_null,
    not_null,
    uncast,
)
from squallpy.logical.isolate_column import isolate
from squallpy.physical.plan import Lookup
from squallpy.runtime.evaluate.exact_arithmetic import LIMIT, largest_magnitude, masked
from squallpy.runtime.evaluate.expression_compiler import compile_expression
from squallpy.runtime.evaluate.logic import is_true
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, all_valid, full
from squallpy.runtime.kernels.dictionary import Dictionary
from squallpy.runtime.kernels.memory_regions import Words
from squallpy.runtime.kernels.radix_sort import ascending
from squallpy.runtime.kernels.sorted_index import GREATEST, LEAST, SortedIndex
from squallpy.runtime.messages.deltas import encode, rank_of

# The rows of a statement, or those of them that are chosen; the ranged variable are the given words.
Framed = Callable[[Words | None, Words | None], VectorFrame]
TRIED = 512  # values that a bisection tries at a time: a predicate takes as long for some as for one
NEAR = 8  # values that it tries first on either side of where a bound should be
_FAR = 2.0**62
Bounds = tuple[Words, Words]  # ranks from which and up to which, row by row


class Ranges:
    """The range of a lookup's variable, made runnable."""

    def __init__(self, step: Lookup) -> None:
        assert step.range is not None
        self._variable = step.range.variable
        self._rising = _Side(step.range.rising, self._variable, True)
        self._falling = _Side(step.range.falling, self._variable, False)
        self._least = least_in_order(self._variable.type)

    @property
    def count_tried(self) -> int:
        """Number of values that bisections have tried so far."""
        return self._rising.tried + self._falling.tried

    def find(self, index: SortedIndex, keys: Words, framed: Framed, names: Dictionary) -> Bounds:
        """Find bounds for each row of `keys`, the values that are equated; low > high where nothing qualifies."""
        n = len(keys)
        low, high = np.full(n, self._least), np.full(n, GREATEST)
        searched = [side for side in (self._rising, self._falling) if side.searched]
        if searched:
            low, high = self._extremes(index, keys, low, high)
        some = low <= high
        for side in (self._rising, self._falling):
            if side.searched:
                found, ok = side.search(index, low, high, framed)
            else:
                found, ok = side.compare(index, n, framed, names)
            some &= ok
            if side is self._rising:
                low = np.maximum(low, found)
            else:
                high = np.minimum(high, found)
        return (low, high) if some.all() else (np.where(some, low, 1), np.where(some, high, 0))

    def find_unordered(self, index: SortedIndex, keys: Words) -> tuple[Words, Words]:
        """List (row, place) of the records whose values are too wide to be in their order."""
        if not self._variable.type.is_wide:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return index.find_below(keys, self._least)

    def test(self, frame: VectorFrame) -> Any:
        """Evaluate the predicates."""
        true: Any = np.ones(frame.rows, bool)
        for side in (self._rising, self._falling):
            true &= np.broadcast_to(side.test(frame), frame.rows)
        return true

    def _extremes(self, index: SortedIndex, keys: Words, low: Words, high: Words) -> Bounds:
        """Find the least and greatest values that there are; low > high where there are none."""
        out = []
        for greatest in (False, True):
            places = index.find_ends(keys, low, high, greatest=greatest)
            words = index.column(index.ranged, np.maximum(places, 0)) if len(index) else low
            out.append(np.where(places < 0, int(not greatest), index.rank(words)))
        return out[0], out[1]


class _Side:
    """The predicates that bound a range from below (`rising`) or above."""

    def __init__(self, predicate: Expr | None, variable: Column, rising: bool) -> None:
        self._variable, self._rising, self.tried = variable, rising, 0
        parts = () if predicate is None else conjuncts(predicate)
        compared = [_read_bound(part, variable) for part in parts]
        self.searched = None in compared
        self._predicate = compile_expression(TRUE if predicate is None else predicate)
        self._bounds = [] if self.searched else [bound for bound in compared if bound]
        guess = next((expr for part in parts if (expr := _approximate_bound(part, variable))), None)
        self._guess = None if guess is None else (compile_expression(guess), guess)

    def test(self, frame: VectorFrame) -> Any:
        return is_true(self._predicate(frame))

    def compare(self, index: SortedIndex, n: int, framed: Framed, names: Dictionary) -> tuple[Words, Any]:
        """Compute the bound of each row from what the variable is compared with, and whether there is one."""
        out, ok = np.full(n, LEAST if self._rising else GREATEST), np.ones(n, bool)
        frame, nearer = framed(None, None), np.maximum if self._rising else np.minimum
        for bound in self._bounds:
            rank, there = bound.find(self._variable.type, self._rising, index, frame, names)
            here = rank != NULL
            ok &= there
            if here.all():
                nearer(out, rank, out=out)
                continue
            nearer(out, rank, out=out, where=here)
            if not bound.optional:
                ok &= here
        return out, ok

    def search(self, index: SortedIndex, low: Words, high: Words, framed: Framed) -> tuple[Words, Any]:
        """Find the first (or last) rank of each row's range for which the predicates are TRUE, and whether there is
        one."""
        n = len(low)
        points = max(1, TRIED // max(n, 1))
        left, right, sign = low.copy(), np.maximum(low, high), 1 if self._rising else -1

        def test(ranks: Words) -> Any:
            self.tried += ranks.size
            frame = framed(index.value(ranks.reshape(-1)), np.repeat(np.arange(n), ranks.shape[1]))
            return np.broadcast_to(self.test(frame), ranks.size).reshape(ranks.shape)

        def narrow(tried: Words) -> Bounds:
            """Narrow the search by values that were tried, one a row, in the direction from the side where it is not
            TRUE."""
            true = test(tried)
            found, first = true.any(axis=1), true.argmax(axis=1)
            rows, last = np.arange(n), np.where(found, np.maximum(first - 1, 0), tried.shape[1] - 1)
            passed, hit = tried[rows, last] + sign, tried[rows, first]  # the best that is left, and one that is TRUE
            moved = ~found | (first > 0)
            if self._rising:
                return np.where(moved, passed, left), np.where(found, hit, right)
            return np.where(found, hit, left), np.where(moved, passed, right)

        ok = test((right if self._rising else left)[:, None])[:, 0]
        start = self._start(framed, index)
        if start is not None and n:
            near = start[:, None] + sign * np.arange(-NEAR, NEAR + 1)
            left, right = narrow(np.clip(near, left[:, None], right[:, None]))
            left, right = np.where(ok, left, low), np.where(ok, right, low)
        while n and (left < right).any():
            span = (right - left).view(np.uint64)[:, None]  # NB: it may pass 2⁶³
            steps = np.arange(points, dtype=np.uint64)
            offsets = np.where(span <= points, np.minimum(steps, span), span // np.uint64(points + 1) * (steps + 1))
            left, right = narrow((left if self._rising else right)[:, None] + sign * offsets.view(np.int64))
            left, right = np.where(ok, left, low), np.where(ok, right, low)
        return left, ok

    def _start(self, framed: Framed, index: SortedIndex) -> Words | None:
        """Guess the bounds, as far as one of the predicates tells."""
        if self._guess is None:
            return None
        function, expr = self._guess
        frame = framed(None, None)
        value = np.asarray(full(function(frame), expr.type, frame.rows).values, np.float64) / 10.0**expr.type.scale
        if index.order.real:
            return index.rank(value.view(np.int64))
        with np.errstate(invalid="ignore"):
            return np.clip(np.nan_to_num(value * 10.0**self._variable.type.scale), -_FAR, _FAR).astype(np.int64)


class _Bound:
    """A sum of terms that a variable is compared with.

    It says whether the sum itself is excluded, and whether a NULL means that there is no bound.
    """

    def __init__(self, terms: Sequence[tuple[int, Expr]], strict: bool, optional: bool = False) -> None:
        self.terms, self.strict, self.optional = tuple(terms), strict, optional
        self._functions = [(sign, compile_expression(term), term.type) for sign, term in terms]

    def find(
        self, type: Type, rising: bool, index: SortedIndex, frame: VectorFrame, names: Dictionary
    ) -> tuple[Words, Any]:
        """Find the first (or last) rank that qualifies, row by row, NULL where a term is NULL; and whether there is
        one."""
        n, (least, most) = frame.rows, (LEAST, GREATEST)
        step = int(self.strict) * (1 if rising else -1)
        if len(self.terms) == 1 and self.terms[0][0] > 0:
            ((_, function, _),), ((_, term),) = self._functions, self.terms
            rank = index.rank(np.asarray(encode(full(function(frame), type, n), term, n, names)))
            there = (rank != (most if rising else least)) | (step == 0)
            return rank + np.where(there & (rank != NULL), step, 0), there
        total, valid = self._sum(frame, step)
        rank, there, least = total, np.ones(n, bool), -LIMIT if type.is_integer else LEAST
        if total.dtype == object:
            there = ((total <= most) if rising else (total >= least)).astype(bool)
            rank = np.clip(total, least, most).astype(np.int64)
        if type.is_integer:
            rank = rank_of(rank, 1 if rising else -1)
        return rank if valid is None else np.where(valid, rank, NULL), there

    def _sum(self, frame: VectorFrame, step: int) -> tuple[Any, Any]:
        """Sum the terms and `step`, exactly; and mark where none of the terms is NULL."""
        vecs = [(sign, _complete(function(frame), type, frame.rows)) for sign, function, type in self._functions]
        values = [(sign, masked(vec)) for sign, vec in vecs]
        wide = 1 + sum(largest_magnitude(part) for _, part in values) >= LIMIT
        total: Any = np.full(frame.rows, step, object if wide else np.int64)
        for sign, part in values:
            if wide:
                part = part.astype(object) if np.ndim(part) else int(part)
            (np.add if sign > 0 else np.subtract)(total, part, out=total)
        return total, all_valid(*(vec.valid for _, vec in vecs))


def _complete(vec: Vec, type: Type, rows: int) -> Vec:
    """Complete a vector of which some rows may be valid and others not; a constant stays one."""
    return full(vec, type, rows) if np.ndim(vec.valid) == 0 and vec.valid is not None else vec


def _read_bound(predicate: Expr, variable: Column) -> _Bound | None:
    """Read a predicate as a bound, if it compares the variable with a value in the same representation, or with sums.

    v > e      x - v <= e      e IS NULL OR v > e + 1      e IS NULL AND NOT v IS NULL OR v > e
    """
    match predicate:
        case Call("or", (absent, compared)):
            bound = _read_bound(compared, variable)
            asked = [c for c in conjuncts(absent) if c != not_null(variable)]  # NB: in a range it is not NULL
            nulls = [is_null(term) for _, term in bound.terms if term.nullable] if bound else []
            if bound and len(nulls) == 1 and asked == nulls:
                return _Bound(bound.terms, bound.strict, optional=True)
        case Call("<" | "<=" | ">" | ">=" as name, (a, b)):
            a, b = uncast(a), uncast(b)
            other = b if a == variable else a
            plain = variable in (a, b) and variable not in columns(other)
            if (
                plain
                and are_stored_alike(other.type, variable.type)
                and not (other.type.is_wide or variable.type.is_wide)
            ):
                return _Bound([(1, other)], name in ("<", ">"))
            found = isolate(predicate, variable)
            return found and _Bound(*found)
    return None


def _approximate_bound(predicate: Expr, variable: Column) -> Expr | None:
    """Rewrite CAST(v AS DOUBLE) > e to e, which is a number nearly as v is at its bound."""
    match predicate:
        case Call("<" | "<=" | ">" | ">=", (a, b)):
            for one, other in ((a, b), (b, a)):
                while isinstance(one, Cast) and one.type.is_numeric:
                    one = one.arg
                if one == variable and variable.type.is_numeric and variable not in columns(other):
                    return other
    return None


def overlaid(groups: Words, bounds: Bounds, words: Words) -> tuple[Words, Bounds, Words]:
    """Cut ranges with counts, group by group, into ranges that do not overlap: (a row of each, bounds, counts ≠ 0).

    [1, 5]: −1, [3, 9]: +1   →   [1, 2]: −1, [6, 9]: +1
    """
    low, high = bounds
    kept = np.flatnonzero(low <= high)
    n = len(kept)
    rows = np.concatenate([kept, kept])
    points = np.concatenate([low[kept], high[kept]])
    after = np.repeat([0, 1], n)  # a range ends after its last point
    order = ascending(np.column_stack([groups.take(rows, axis=0), points, after]))
    rows, points, after = rows[order], points[order], after[order]
    change = words.take(rows, axis=0) * (1 - 2 * after)[:, None]
    total = np.cumsum(change, axis=0)  # each group ends with 0
    some = np.flatnonzero(total[:-1].any(axis=1)) if n else np.empty(0, np.int64)
    starts, ends = points[some] + after[some], points[some + 1] - 1 + after[some + 1]
    wide = points[some] < points[some + 1]  # NB: only then is the start sure not to overflow
    there = np.flatnonzero(np.where(wide, starts <= ends, after[some] < after[some + 1]))
    return rows[some][there], (starts[there], ends[there]), np.ascontiguousarray(total[some][there])
