"""Removal of unread columns of windows and bags; times of a window become panes that expire together."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import gcd

from squallpy.base.types import BIGINT, TIMESTAMP
from squallpy.catalog.window_spec import WindowExtent, WindowSpec
from squallpy.logical.expressions import Call, Column, Expr, Literal
from squallpy.optimizer.pass_manager import PassContext
from squallpy.program.auxiliary.groups import Groups
from squallpy.program.auxiliary.relation import AuxiliaryRelation
from squallpy.program.auxiliary.window_rows import WindowRows
from squallpy.program.calculus import Assign
from squallpy.program.components import prune
from squallpy.program.trigger_program import Lowered
from squallpy.program.views import View


def prune_columns(lowered: Lowered, context: PassContext) -> Lowered:
    """Keep of windows and bags only the columns that are read, and the time of windows.

    N1(a, b, c, ts), of which a is read    →   N1(a, ts)

    Windows whose late rows are reported keep all columns.
    """
    out, fields_read = list[AuxiliaryRelation](), defaultdict[str, set[str]](set)
    for view in lowered.views:
        _add_fields(fields_read, view)
    for aux in reversed(lowered.auxiliary):  # outermost first: columns dropped there are not read by the terms inside
        read = fields_read[aux.relation.name]
        match aux.kind:
            case WindowRows(window) if not window.report_late:
                aux = _pruned_window(aux, window, read, context.ids)
            case Groups() if aux.output.is_bag:
                aux = _of_items(aux, tuple(item for item in aux.output.items if item[0] in read))
        out.append(aux)
        _add_fields(fields_read, aux.view)
    return replace(lowered, auxiliary=tuple(reversed(out)))


def _add_fields(found: Mapping[str, set[str]], view: View) -> None:
    """Add the fields that a view reads, to those of its relations."""
    for atom in view.atoms:
        found[atom.relation.name].update(title for title, _ in atom.fields)


def _pruned_window(aux: AuxiliaryRelation, window: WindowSpec, read: set[str], ids: Iterator[int]) -> AuxiliaryRelation:
    items = tuple((title, expr) for title, expr in aux.output.items if title in (*read, window.field))
    if window.field not in read and (pane := _pane(window, dict(items)[window.field], ids)):
        items = tuple((title, pane.variable if title == window.field else expr) for title, expr in items)
        return _of_items(aux, items, pane)
    return _of_items(aux, items)


def _of_items(aux: AuxiliaryRelation, items: tuple[tuple[str, Expr], ...], *made: Assign) -> AuxiliaryRelation:
    """Keep these of its items, which are keys of its view, or `made` of some."""
    keys = tuple(dict.fromkeys(expr for _, expr in items if isinstance(expr, Column)))
    terms = (replace(term, body=prune((*term.body, *made), keys, term.lanes)) for term in aux.view.terms)
    return replace(aux, view=replace(aux.view, keys=keys, terms=tuple(terms)), output=replace(aux.output, items=items))


def _pane(window: WindowSpec, time: Expr, ids: Iterator[int]) -> Assign | None:
    """Replace a row's time by the end of its pane, shared by all rows that expire together; None if each expires alone.

    RANGE 60 SEC SLIDE 20 SEC    (0, 20] → 20    (20, 40] → 40        TUMBLE 20 SEC    [0, 20) → 0    [20, 40) → 20
    """
    frame = window.frame
    size = gcd(frame.size, frame.slide) if isinstance(frame, WindowExtent) else 1
    if not isinstance(frame, WindowExtent) or size == 1 or not isinstance(time, Column) or time.type != TIMESTAMP:
        return None
    # NB: a number of microseconds, as a TIMESTAMP that a pane at the ends of the years 1 to 9999 may not have
    end = Call("trunc_time", (time, Literal(size, BIGINT)), BIGINT, time.nullable)
    if not frame.tumbling:
        before = Call("add_micros", (time, Literal(-1, BIGINT)), BIGINT, time.nullable)
        end = Call("trunc_time", (before, Literal(size, BIGINT)), BIGINT, time.nullable)
        end = Call("add_micros", (end, Literal(size, BIGINT)), BIGINT, time.nullable)
    return Assign(Column(next(ids), time.name, TIMESTAMP, time.nullable), end)
