"""Detection of terminals and their abilities."""

import os
from typing import TextIO


def can_redraw(stream: TextIO) -> bool:
    """True if a stream can be redrawn: it is a terminal with a movable cursor.

    NB: `!squall run …` in a cell of a notebook has a terminal too, but the cell shows everything written to it.
    """
    return stream.isatty() and os.environ.get("TERM") != "dumb" and "JPY_PARENT_PID" not in os.environ
