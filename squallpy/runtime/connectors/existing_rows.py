"""The refusal of a target that has rows which are not of this run, by all sinks of servers and tables."""

from squallpy.base.errors import Span, SquallError

NONE = -1
"""The number of the last batch where there is none."""


def existing_error(target: object, last: int, place: Span | None, rows: str = "rows") -> SquallError:
    """Describe a target that a run which begins anew may not take.

    Args:
        last: The last batch of the same query that is there, `NONE` if what is there is of others.
        rows: What a target of this kind has.
    """
    what = f"has {rows}" if last == NONE else f"has {last + 1:,} batches of this query"
    hint = "write existing 'replace' to delete them, or existing 'keep'"
    return SquallError("SQ7005", f"{target} {what}, and this run begins anew", place, hint)
