"""Detection of terminals and their abilities."""

import os
from typing import TextIO


def can_redraw(stream: TextIO) -> bool:
    """True if what was written to a stream can be written anew: it is a terminal with a cursor that moves.

    NB: `!squall run …` in a cell of a notebook has a terminal, too, of which the cell shows all that it is sent.
    """
    return stream.isatty() and os.environ.get("TERM") != "dumb" and "JPY_PARENT_PID" not in os.environ
