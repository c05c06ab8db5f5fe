"""Deltas that travel as rows, because the payloads made of them are wider.

ΔHOUSE(k)⟨LIFT(x, 0)·LIFT(y, 1)⟩ by k   →   ΔHOUSE_ROWS(k, x, y)⟨1⟩ by k, and ΔHOUSE(k) made of these where they arrive

A cofactor matrix of m variables has some m² words, their row has m. To add up payloads where a batch is read pays if
that makes fewer words of it.
"""

from collections.abc import Collection
from dataclasses import replace
from itertools import chain

from squallpy.base.free_names import FreeNames
from squallpy.base.rings import Payload
from squallpy.base.types import Kind
from squallpy.logical.expressions import columns
from squallpy.physical.distribute.single_transformer import RowDeltas
from squallpy.physical.distribute.statement_blocks import StatementBlock
from squallpy.program.trigger_program import TriggerProgram
from squallpy.program.views import Monomial, View

ROWS_A_KEY = 3
"""Rows that a key is assumed to have in a batch: it may be any number."""


def row_deltas(program: TriggerProgram) -> RowDeltas:
    """Find the deltas that are wider than their rows."""
    deltas = (delta for trigger in program.triggers for delta in trigger.deltas)
    found, free_names = dict[str, tuple[View, View]](), FreeNames(view.name for view in (*program.views, *deltas))
    derived = {aux.relation.name for aux in program.auxiliary}
    for trigger in program.triggers:
        for delta in trigger.deltas if trigger.relation.name not in derived else ():
            rows = _rows_of(delta)
            can_be_keys = all(v.type.kind is not Kind.BIGINT for v in rows.keys[len(delta.keys) :])  # NB: one cannot
            if delta.keys and can_be_keys and _words(delta) > ROWS_A_KEY * _words(rows):
                found[delta.name] = delta, replace(rows, name=free_names.take(f"{delta.name}_ROWS"))
    return found


def with_row_deltas(program: TriggerProgram, rows: RowDeltas, blocks: Collection[StatementBlock]) -> TriggerProgram:
    """Let triggers make the deltas that the blocks read: rows, payloads, or both."""
    read = frozenset[str]().union(*(block.reads for block in blocks))
    triggers = []
    for trigger in program.triggers:
        made = [
            (d for d in rows[delta.name] if d.name in read) if delta.name in rows else (delta,)
            for delta in trigger.deltas
        ]
        triggers.append(replace(trigger, deltas=tuple(chain.from_iterable(made))))
    return replace(program, triggers=tuple(triggers))


def _rows_of(delta: View) -> View:
    """Make the delta of a delta's rows, each with the number of those that are alike; it has no name of its own."""
    (term,) = delta.terms
    read = {v for lane in term.lanes for factor in lane or () for v in columns(factor)}
    keys = (*delta.keys, *sorted(read.difference(delta.keys), key=lambda v: v.id))
    return View(delta.name, keys, (Monomial(term.body, ((),)),))


def _words(delta: View) -> int:
    return len(delta.keys) + Payload(delta.rings).width
