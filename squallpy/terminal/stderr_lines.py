"""Lines on stderr, for those who read them and not for what reads stdout."""

import sys


def say(line: str) -> None:
    """Print a line that is no data."""
    print(line, file=sys.stderr, flush=True)
