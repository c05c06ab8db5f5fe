"""ROWS, GROUPS and RANGE BETWEEN … AND …: which rows of a partition a window function looks at."""

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import Kind
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.aggregate_calls import SortKeys
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.order_by import MOST
from squallpy.logical.expressions import Literal
from squallpy.logical.window_frame import CURRENT_ROW, DEFAULT_FRAME, Bound, FrameUnit, WindowFrame

KEPT = "NO OTHERS"  # what EXCLUDE leaves out by default
SIDES = {"PRECEDING": -1, "FOLLOWING": 1}


def bind_frame(rows: Scalars, spec: exp.WindowSpec | None, order: SortKeys) -> WindowFrame:
    """Bind a frame; by default it ends with the rows that are like the current one."""
    if spec is None:
        return DEFAULT_FRAME
    rows.ctx.refuse_other_args(spec, "kind", "start", "start_side", "end", "end_side", "exclude")
    unit = FrameUnit(spec.args["kind"])
    if str(spec.args.get("exclude") or KEPT) != KEPT:
        raise rows.ctx.refuse(spec, QUERIES["frame"])
    counted = unit is not FrameUnit.RANGE
    start, end = bind_bound(rows, spec, "start", counted), bind_bound(rows, spec, "end", counted)
    if unit is FrameUnit.RANGE and start == end == CURRENT_ROW:  # the rows that are like the current one
        unit, start, end = (FrameUnit.GROUPS, start, end) if order else (unit, None, None)
    frame = WindowFrame(unit, start, end)
    if frame.is_open:
        return frame
    if start is not None and end is not None:
        backwards = start[0] > end[0] or (counted and start[0] * start[1].value > end[0] * end[1].value)
        if backwards:
            raise rows.ctx.error("SQ2005", "a frame that ends before it begins", spec)
    if unit is FrameUnit.GROUPS and not order:
        raise SquallError("SQ2009", "a frame of GROUPS needs ORDER BY", rows.ctx.span(spec))
    if unit is FrameUnit.RANGE and len(order) != 1:
        raise SquallError("SQ2009", "a frame of RANGE needs one key in ORDER BY", rows.ctx.span(spec))
    return frame


def bind_bound(rows: Scalars, spec: exp.WindowSpec, which: str, counted: bool) -> Bound | None:
    """Bind one end of a frame; None if it is unbounded."""
    given, side = spec.args.get(which), str(spec.args.get(f"{which}_side"))
    if given == "UNBOUNDED":
        if SIDES[side] != (-1 if which == "start" else 1):
            raise rows.ctx.error("SQ2005", "a frame that ends before it begins", spec)
        return None
    if given is None or given == "CURRENT ROW":
        return CURRENT_ROW
    bound = rows.bind(given)
    distance = rows.ctx.constant(bound)
    fits = bound.type.is_integer if counted else bound.type.is_numeric or bound.type.kind is Kind.INTERVAL
    if distance is None or not fits or distance.value is None:
        what = "a whole number of rows" if counted else "a number or an INTERVAL"
        raise rows.ctx.error("SQ2005", f"a frame reaches {what}, PRECEDING or FOLLOWING", given)
    if any(part < 0 for part in (distance.value if distance.type.kind is Kind.INTERVAL else (distance.value,))):
        other = next(word for word in SIDES if word != side)
        raise rows.ctx.error("SQ2005", "a frame does not reach less than 0", given, f"write {other}")
    if counted:
        distance = Literal(min(distance.value, MOST), distance.type)
    return CURRENT_ROW if distance.value == 0 else (SIDES[side], distance)
