"""Statements that multiply elements of the cofactor ring, printed: rows note where factors are, a call multiplies them.

ΔV_R(k) → probe V_S(k) → add ⟨ΔV_R · V_S · LIFT(k)⟩ to V()

    for row in range(rows):
        …
        store(place, 0, given)              where the block of ΔV_R is
        store(place, 1, payload)            that of V_S
        store(place, 2, real_of(k, …))      k as a double
    multiply_rows(product, found, steps)    adds up the products of all of these rows
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from squallpy.base.records import dataclass
from squallpy.base.rings import Cofactor, Payload, Ring
from squallpy.base.types import DOUBLE
from squallpy.codegen.names import Lines, NotCompilable
from squallpy.codegen.statement_code import ProductCode, RingFactor
from squallpy.codegen.statements import StatementPrinter
from squallpy.logical.expressions import Cast
from squallpy.physical.plan import Lookup, PoolPlan
from squallpy.program.calculus import lifted

_ROWS: Final = 256  # rows that are multiplied in one call, if all of them are added up,
_WORDS: Final = 1 << 14  # else as many as have room in so many words


@dataclass
class ProductPrinter(StatementPrinter):
    """Prints a statement whose target has one lane, of the cofactor ring."""

    given: ClassVar[tuple[str, ...]] = (*StatementPrinter.given, "product")
    finder: ClassVar[str] = "find_keys"  # NB: the product asks for blocks itself, in time

    def _check_payload(self, payload: Payload) -> None:
        for ring in payload.rings:
            if ring is not Ring.COUNT and not (isinstance(ring, Cofactor) and ring.degree == 1):
                raise NotCompilable(f"⟨{ring.name}⟩")

    def _is_batched(self, step: Lookup) -> bool:
        return True

    def _emit(self, target: PoolPlan, given: Sequence[tuple[Payload, tuple[int, ...], str]]) -> None:
        """Print that the factors of a row are noted."""
        if self.is_checked:
            raise NotCompilable("values that may have no answer in 64 bits")
        [ring], [lane], factors = target.payload.rings, self.update.lanes, list[RingFactor]()
        if not isinstance(ring, Cofactor) or lane is None:
            raise NotCompilable(f"⟨{ring.name}⟩")
        self.rows = max(8, min(_ROWS, _WORDS // ring.words)) if target.keys else _ROWS
        for payload, picks, where in given:
            if picks:
                self.body(f"store(place, {len(factors)}, {where})")
                factors.append(RingFactor(len(factors), payload.offsets[picks[0]], payload.rings[picks[0]]))
        for factor in lane:
            if (value := lifted(factor)) is None:
                raise NotCompilable(f"{factor}, a factor of {ring.name}")
            word = self._row.value(Cast(value[0], DOUBLE))
            self.body(f"store(place, {len(factors)}, {word.code})")
            factors.append(RingFactor(len(factors), 0, None, value[1]))
        if self._row.checks:
            raise NotCompilable("values that may have no answer in 64 bits")
        for i, key in enumerate(self.update.keys):
            self.body(f"store(out_keys, {len(target.keys)} * found + {i}, {self.words[key.id]})")
        self.body(f"found, place = found + 1, place + {8 * len(factors)}")
        with self.body.block(f"if found == {self.rows}:"):
            self._flush(self.body, target)
            self.body("found, place = 0, rows_of(product)")
            if not target.keys:
                self.body("some = 1")
        self.product = ProductCode(ring, tuple(factors), len(factors), self.rows)
        self.room = self.rows * (len(target.keys) + target.payload.width) if target.keys else target.payload.width

    def _flush(self, lines: Lines, target: PoolPlan) -> None:
        """Print that the rows that are noted are multiplied and, if the target has keys, added."""
        if not target.keys:
            lines("multiply_rows(product, found, steps)")
            return
        lines(f"multiply_each(product, found, out_words, {target.payload.width}, steps)")
        self._add(lines, target, "found")
        lines("repeats |= result")

    def _begin(self, lines: Lines, target: PoolPlan) -> None:
        lines("found, place, out_keys = 0, rows_of(product), room_of(steps)")
        lines(f"out_words = out_keys + {8 * self.rows * len(target.keys)}")
        lines("repeats = 0" if target.keys else "some = 0")

    def _end(self, lines: Lines, target: PoolPlan) -> None:
        if target.keys:
            self._flush(lines, target)
            lines("return repeats")
            return
        lines("if some | found == 0:")
        lines("    return 0")
        self._flush(lines, target)
        lines("settle_sum(product, out_words, steps)")
        self._add(lines, target, "1")
        lines("return result")
