"""Pauses between attempts to reach a server that is away.

pause(0)   →   0.1 seconds          pause(9)   →   5.0
"""

PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds; the last is repeated


def pause(tries: int) -> float:
    """Return the seconds to wait after a number of failed attempts."""
    return PAUSES[min(tries, len(PAUSES) - 1)]
