"""Names of pools: a view, or what else a pool is of, and the role that the pool plays for it.

PoolName("M_R")                 →   "M_R"
PoolName("M_R", Role.CHANGES)   →   "changes M_R"
"""

from enum import Enum


class Role(Enum):
    """Role of a pool."""

    VIEW = ""
    OTHER_GRID = "other"  # the view on the grid of odd epochs, which a migration fills or leaves
    REACHED = "reached"  # the keys up to which a migration has copied the view, in the order of its sorted index
    CHANGES = "changes"  # what batches have changed in the view since a migration last copied it
    CLOCK = "clock"  # the greatest time that a stream has shown
    IDLE = "idle"  # 1 where a stream holds no window back
    ACTIVITY = "activity"  # the times between the pauses of a stream
    PASSAGE = "passage"  # of processing time at a stream: a message, no pool
    LATEST = "latest"  # the last row of each key of a stream of upserts
    LEDGER = "ledger"  # the rows of a change stream, by their hashes
    BOUND = "bound"  # the time up to which a window has forgotten rows
    END = "end"  # the time up to which a window shows rows
    EXTREMES = "extremes"  # of groups
    SKYLINE = "skyline"
    INTERVALS = "intervals"
    SPANS = "spans"
    SESSIONS = "sessions"
    FIRST_ROWS = "first rows"  # of groups
    COEFFICIENTS = "coefficients"  # of the regression of each group, which descent goes on from
    FIXPOINT = "fixpoint"  # leaves and tables of a recursive query
    FIRST_BATCH = "first batch"  # one record, if it is done: of no view


ROLES_OF_GROUPS = (Role.EXTREMES, Role.SKYLINE, Role.INTERVALS, Role.SPANS, Role.SESSIONS, Role.FIRST_ROWS)
"""Roles of pools that maintainers of auxiliary relations keep: their keys are a group, then others."""


class PoolName(str):
    """Name of the pool that plays a role for a view, a relation or a clock; files and messages use it as it is."""

    __slots__ = ()

    def __new__(cls, of: str = "", role: Role = Role.VIEW) -> "PoolName":
        return super().__new__(cls, f"{role.value} {of}".strip())
