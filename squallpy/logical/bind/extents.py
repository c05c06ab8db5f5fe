"""ROWS, GROUPS and RANGE BETWEEN … AND …: which rows of a partition a window function looks at.

RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW   →   Frame(WITHIN, low (−1, 1 hour), high (0, …))
ROWS 2 PRECEDING                                          →   Frame(NEAR, low −2, high 0)
"""

from sqlglot import exp

from squallpy.base.types import INT, Kind
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.frames import ALL, BEFORE, GROUPS, NEAR, UPTO, WITHIN, Bound, Frame
from squallpy.logical.bind.scalar import Scalars
from squallpy.logical.expressions import Literal

HERE: Bound = (0, Literal(0, INT))
SIDES = {"PRECEDING": -1, "FOLLOWING": 1}


def extent(rows: Scalars, spec: exp.WindowSpec | None, name: str) -> Frame:
    """The rows of a frame, without partition and order; BEFORE are those from here on. By default it is up to here."""
    if spec is None:
        return Frame((), (), UPTO)
    rows.ctx.only(spec, "kind", "start", "start_side", "end", "end_side", "exclude")
    kind = spec.args["kind"]
    if spec.args.get("exclude"):
        raise rows.ctx.refuse(spec, QUERIES["frame"])
    counted = kind != "RANGE"
    low, high = bound(rows, spec, "start", counted), bound(rows, spec, "end", counted)
    alone = kind == "ROWS"
    if low is None and high is None:
        return Frame((), (), ALL)
    if (low, high) == (None, HERE):
        return Frame((), (), UPTO, alone, asker=name)
    if (low, high) == (HERE, None):
        return Frame((), (), BEFORE, alone, asker=name)
    if low is not None and high is not None:
        backwards = low[0] > high[0] or (counted and low[0] * low[1].value > high[0] * high[1].value)
        if backwards:
            raise rows.ctx.error("SQ2005", "a frame that ends before it begins", spec)
    return Frame((), (), {"ROWS": NEAR, "GROUPS": GROUPS}.get(kind, WITHIN), alone, low, high, asker=name)


def bound(rows: Scalars, spec: exp.WindowSpec, which: str, counted: bool) -> Bound | None:
    """One end of a frame: how far it is, and which way; None if it is unbounded."""
    given, side = spec.args.get(which), str(spec.args.get(f"{which}_side"))
    if given == "UNBOUNDED":
        if SIDES[side] != (-1 if which == "start" else 1):
            raise rows.ctx.error("SQ2005", "a frame that ends before it begins", spec)
        return None
    if given is None or given == "CURRENT ROW":
        return HERE
    far = rows.bind(given)
    fits = far.type.is_integer if counted else far.type.is_numeric or far.type.kind is Kind.INTERVAL
    if not isinstance(far, Literal) or not fits or far.value is None:
        what = "a whole number of rows" if counted else "a number or an INTERVAL"
        raise rows.ctx.error("SQ2005", f"a frame reaches {what}, PRECEDING or FOLLOWING", given)
    return HERE if far.value == 0 else (SIDES[side], far)
