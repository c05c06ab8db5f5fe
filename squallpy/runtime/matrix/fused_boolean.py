"""Boolean triggers as one kernel: visits to views one after the other, on columns that are the lines of one array.

    pass G: G += uG * vG (of which uG~ * vG~ is new)        lines 0 1 are uG, 2 3 vG, 4 5 uG~, 6 7 vG~
    pass x0: t1 := x0 * vG~', x0 += uG~ * vG~               8 9 t1
    V1 := [t1'; vG~]                                        8 9 6 7: to put side by side costs nothing
    …

What a trigger of an idempotent semiring does is known before an update comes, but for its rank.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from squallpy.base.records import dataclass
from squallpy.maintain.matrix.materialise import MatrixTrigger
from squallpy.maintain.matrix.matrix_expressions import Matrix, Name, Stack, Sum, Transpose
from squallpy.physical.matrix.view_passes import ViewPass, Work
from squallpy.runtime.kernels.matrix import boolean
from squallpy.runtime.kernels.matrix.boolean import IDENTITY, Bits, Lines, MatrixPass, Numbers
from squallpy.runtime.matrix.packed_boolean import PackedMatrix
from squallpy.runtime.matrix.stored_views import BitView, MatrixView


@dataclass(frozen=True, slots=True)
class FusedTrigger:
    """The steps of a trigger for updates of one rank, over `views`, on so many lines."""

    views: tuple[str, ...]
    steps: tuple[MatrixPass, ...]
    codes: tuple[Numbers, ...]
    lines: int

    def fire(self, views: Mapping[str, MatrixView], u: PackedMatrix, v: PackedMatrix) -> Bits:
        """Change views as the trigger does for u·v; what the lines are then."""
        found = [_in_bits(views[name]) for name in self.views]
        lines = np.zeros((self.lines, boolean.words(max(max(view.shape) for view in found))), np.uint64)
        at = 0
        for half in (u.columns, v.rows):
            lines[at : at + len(half), : half.shape[1]] = half
            at += len(half)
        boolean.visit(self.codes, [view.stored for view in found], lines)
        return lines

    def changes(self, views: Mapping[str, MatrixView], lines: Bits) -> Iterator[tuple[str, PackedMatrix, PackedMatrix]]:
        """Yield each updated view, with the part of its update that made a difference, as factors."""
        for step in self.steps:
            if step.u:
                name = self.views[step.matrix]
                n, m = views[name].shape
                left, right = lines[step.left, : boolean.words(n)], lines[step.right, : boolean.words(m)]
                yield name, PackedMatrix(left, n), PackedMatrix(right, m, True)


def _in_bits(view: MatrixView) -> BitView:
    assert isinstance(view, BitView)
    return view


def fuse(trigger: MatrixTrigger, work: Sequence[Work], rank: int) -> FusedTrigger | None:
    """Compile a trigger to one kernel, or None if more than sums and stacks is computed between visits."""
    numbered = _Numbered(trigger, rank)
    try:
        for item in work:
            numbered.add(item)
    except _Otherwise:
        return None
    steps = tuple(numbered.steps)
    return FusedTrigger(tuple(numbered.views), steps, tuple(step.code for step in steps), numbered.count)


class _Otherwise(Exception):
    """Work that is no visit, and more than columns added or side by side."""


class _Numbered:
    """The lines that factors are."""

    def __init__(self, trigger: MatrixTrigger, rank: int) -> None:
        self.count, self.views, self.steps = 0, list[str](), list[MatrixPass]()
        self._input = trigger.input
        self._lines: dict[str, Lines] = {}
        self._lines = {half.name: self._new_lines(rank) for half in (trigger.u, trigger.v)}

    def add(self, item: Work) -> None:
        if isinstance(item, ViewPass):
            self.steps.append(self._step(item))
        else:
            self._lines[item.name.name] = self._lines_of(item.value)

    def _step(self, item: ViewPass) -> MatrixPass:
        update, view = item.update, item.view.name
        if view not in self.views:
            self.views.append(view)
        x, y = (
            [line for read in reads for line in self._lines_of(read.factor)] for reads in (item.straight, item.across)
        )
        u, v = (self._lines_of(update.u), self._lines_of(update.v)) if update else (range(0), range(0))
        mx, mty, left, right = (self._new_lines(len(of)) for of in (x, y, u, v))
        for reads, made in ((item.straight, mx), (item.across, mty)):
            at = 0
            for read in reads:
                count = len(self._lines_of(read.factor))
                self._lines[read.name.name] = made[at : at + count]
                at += count
        halves = (update.left if update else None) or ()
        self._lines |= {half.name: made for half, made in zip(halves, (left, right), strict=bool(halves))}
        last = bool(halves) and item.view == self._input
        return MatrixPass(self.views.index(view), x, mx, y, mty, u, v, left, right, last)

    def _lines_of(self, matrix: Matrix) -> Lines:
        match matrix:
            case Name(name) if name in self._lines:
                return self._lines[name]
            case Transpose(of):
                return self._lines_of(of)
            case Stack(parts):
                return [line for part in parts for line in self._lines_of(part)]
            case Sum(terms):
                added = [self._lines_of(term) for term in terms]
                into = self._new_lines(len(added[0]))
                self.steps += [MatrixPass(IDENTITY, lines, into) for lines in added]
                return into
        raise _Otherwise

    def _new_lines(self, lines: int) -> Lines:
        self.count += lines
        return range(self.count - lines, self.count)
