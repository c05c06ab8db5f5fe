"""ROWS, GROUPS and RANGE BETWEEN … AND …: which rows of a partition a window function looks at.

RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW   →   Frame(WITHIN, low (−1, 1 hour), high (0, …))
ROWS 2 PRECEDING                                          →   Frame(NEAR, low −2, high 0)
"""

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import Kind
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.order_by import MOST
from squallpy.logical.bind.over.frame_aggregates import ALL, BEFORE, GROUPS, HERE, NEAR, UPTO, WITHIN, Bound, Frame, Key
from squallpy.logical.expressions import Literal

KEPT = "NO OTHERS"  # what EXCLUDE leaves out by default
SIDES = {"PRECEDING": -1, "FOLLOWING": 1}


def extent(rows: Scalars, spec: exp.WindowSpec | None, name: str, order: tuple[Key, ...]) -> Frame:
    """The rows of a frame, without partition; BEFORE are those from here on. By default it is up to here."""
    if spec is None:
        return Frame((), order, UPTO)
    rows.ctx.only(spec, "kind", "start", "start_side", "end", "end_side", "exclude")
    kind = spec.args["kind"]
    if str(spec.args.get("exclude") or KEPT) != KEPT:
        raise rows.ctx.refuse(spec, QUERIES["frame"])
    counted = kind != "RANGE"
    low, high = bound(rows, spec, "start", counted), bound(rows, spec, "end", counted)
    alone = kind == "ROWS"
    if low is None and high is None:
        return Frame((), order, ALL)
    if (low, high) == (None, HERE):
        return Frame((), order, UPTO, alone, asker=name)
    if (low, high) == (HERE, None):
        return Frame((), order, BEFORE, alone, asker=name)
    if low is not None and high is not None:
        backwards = low[0] > high[0] or (counted and low[0] * low[1].value > high[0] * high[1].value)
        if backwards:
            raise rows.ctx.error("SQ2005", "a frame that ends before it begins", spec)
    if kind == "GROUPS" and not order:
        raise SquallError("SQ2009", "a frame of GROUPS needs ORDER BY", rows.ctx.span(spec))
    if not counted and len(order) != 1:
        raise SquallError("SQ2009", "a frame of RANGE needs one key in ORDER BY", rows.ctx.span(spec))
    return Frame((), order, {"ROWS": NEAR, "GROUPS": GROUPS}.get(kind, WITHIN), alone, low, high, asker=name)


def bound(rows: Scalars, spec: exp.WindowSpec, which: str, counted: bool) -> Bound | None:
    """One end of a frame: how far it is, and which way; None if it is unbounded."""
    given, side = spec.args.get(which), str(spec.args.get(f"{which}_side"))
    if given == "UNBOUNDED":
        if SIDES[side] != (-1 if which == "start" else 1):
            raise rows.ctx.error("SQ2005", "a frame that ends before it begins", spec)
        return None
    if given is None or given == "CURRENT ROW":
        return HERE
    bound = rows.bind(given)
    far = rows.ctx.constant(bound)
    fits = bound.type.is_integer if counted else bound.type.is_numeric or bound.type.kind is Kind.INTERVAL
    if far is None or not fits or far.value is None:
        what = "a whole number of rows" if counted else "a number or an INTERVAL"
        raise rows.ctx.error("SQ2005", f"a frame reaches {what}, PRECEDING or FOLLOWING", given)
    if any(part < 0 for part in (far.value if far.type.kind is Kind.INTERVAL else (far.value,))):
        other = next(word for word in SIDES if word != side)
        raise rows.ctx.error("SQ2005", "a frame does not reach less than 0", given, f"write {other}")
    if counted:
        far = Literal(min(far.value, MOST), far.type)
    return HERE if far.value == 0 else (SIDES[side], far)
