"""Outcomes of statements, as those who gave them show them."""

import pyarrow as pa

from squallpy.base.records import dataclass
from squallpy.live.subscription import ChangeReader


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a statement.

    Args:
        message: What was done, as psql says it: CREATE VIEW.
        table: Rows of a SELECT, SHOW or DESCRIBE.
        text: What EXPLAIN shows.
        view: The view or query that was created.
        subscription: The changes that SUBSCRIBE asks for.
    """

    message: str
    table: pa.Table | None = None
    text: str | None = None
    view: str | None = None
    subscription: ChangeReader | None = None
