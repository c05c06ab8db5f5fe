"""Pauses between attempts to reach a server that is away.

pause(0)   →   0.1 seconds          pause(9)   →   5.0
"""

import re
import time
from collections.abc import Callable
from math import inf
from typing import TypeVar

from squallpy.base.errors import SquallError
from squallpy.base.events import SOURCES, WARNING, first_line, log_event

T = TypeVar("T")
PATIENCE = 30.0  # seconds for a server that is away when a run begins
PAUSES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # seconds; the last is repeated
COLOURS = re.compile(r"\x1b\[[0-9;]*m")
"""Sequences that colour a terminal, which deltalake's errors have."""
_STORE_AWAY = re.compile(
    r"HTTP error|error sending request|status code\W+(408|429|5\d\d)\b|curlCode: (6|7|16|18|28|35|52|55|56|92)\b"
    r"|AWS Error (NETWORK_CONNECTION|SLOW_DOWN|THROTTLING|SERVICE_UNAVAILABLE|INTERNAL_FAILURE|REQUEST_TIMEOUT)"
    r"|connection (refused|reset|closed|timed out)|(could not|couldn't) connect",
    re.IGNORECASE,
)
"""Errors of connections that are not made or end within an answer, and of servers that are too busy."""
_HOPELESS = re.compile("certificate|builder error", re.IGNORECASE)


def pause(tries: int) -> float:
    """Return the seconds to wait after a number of failed attempts."""
    return PAUSES[min(tries, len(PAUSES) - 1)]


def is_store_away(error: BaseException) -> bool:
    """True if an object store cannot be reached or is too busy, as its clients in Rust and C++ put it."""
    said = "" if isinstance(error, SquallError) else COLOURS.sub("", str(error))
    return bool(_STORE_AWAY.search(said)) and not _HOPELESS.search(said)


def ask_again(ask: Callable[[], T], is_passing: Callable[[Exception], bool], server: object, seconds: float = inf) -> T:
    """Call a function, again as long as its server is away, which is told once.

    Args:
        seconds: How long it is waited for; the error is raised then, and nothing told.
    """
    until, tries = time.monotonic() + seconds, 0
    while True:
        try:
            answer = ask()
        except Exception as error:
            if not is_passing(error) or time.monotonic() >= until:
                raise
            if not tries and seconds == inf:
                log_event(SOURCES, WARNING, "server is away", server=str(server), reason=first_line(error))
        else:
            if tries and seconds == inf:
                log_event(SOURCES, WARNING, "server is back", server=str(server))
            return answer
        time.sleep(min(pause(tries), max(0.0, until - time.monotonic())))
        tries += 1
