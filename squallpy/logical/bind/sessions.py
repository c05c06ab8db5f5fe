"""SESSION_WINDOW(at, gap) as a key of GROUP BY: the session of a row among those that all other keys make equal.

    GROUP BY k, SESSION_WINDOW(at, '5 minutes')   →   Aggregate by k, start (SessionWindow start by k of at, 5 MIN (…))

`start` is a call of `session_window`, which stands in no plan, until all keys are known; `end` is the greatest time of
the session's rows and the gap.
"""

from sqlglot import exp

from squallpy.base.errors import SquallError
from squallpy.base.types import BIGINT, TIMESTAMP
from squallpy.frontend.unsupported import QUERIES
from squallpy.logical.bind.context import Context
from squallpy.logical.bind.expressions import Scalars
from squallpy.logical.bind.time_buckets import SESSION
from squallpy.logical.coercion import coerce
from squallpy.logical.expressions import Call, Column, Expr, Literal, transform
from squallpy.logical.nodes import Node
from squallpy.logical.session_windows import SessionWindow


def bind_session_start(s: Scalars, node: exp.Anonymous) -> Expr:
    """Bind the start of a session; refuse it where rows are not grouped yet."""
    if s.aggregation is None and s.clause != "GROUP BY":
        raise s.ctx.refuse(node, QUERIES["session as a value"])
    time, gap = node.expressions
    at = s.as_moment(s.bind(time), TIMESTAMP, time)
    if not at.type.is_temporal:
        message = f"SESSION_WINDOW of a {at.type}, which is no time"
        raise SquallError("SQ2005", message, s.ctx.span(time), "take a TIMESTAMP or DATE")
    return Call(SESSION, (coerce(at, TIMESTAMP), Literal(int(gap.name), BIGINT)), TIMESTAMP, False)


def place_sessions(ctx: Context, plan: Node, keys: dict[Expr, Column]) -> tuple[Node, dict[Expr, Column]]:
    """Put the rows of a block in the sessions that are among its keys; returned with the keys in terms of them."""
    found = next((key for key in keys if isinstance(key, Call) and key.name == SESSION), None)
    if found is None:
        return plan, keys
    time, gap = found.args
    assert isinstance(gap, Literal)
    start, last = (ctx.column(name, TIMESTAMP, False) for name in ("start", "last"))
    others = tuple(key for key in keys if key != found and not isinstance(key, Literal))
    return SessionWindow(plan, others, time, gap.value, start, last), {
        transform(key, lambda e: start if e == found else None): column for key, column in keys.items()
    }
