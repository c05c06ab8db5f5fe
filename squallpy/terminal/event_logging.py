"""`--log-level` and `--log-format`: events on stderr, a line each; without both there are none."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from squallpy.base.errors import SquallError
from squallpy.base.events import ERROR, INFO, LEVELS, QUERY, ROOT, EventFormatter, log_event
from squallpy.terminal.failures import Interrupted, status_of


class EventHandler(logging.Handler):
    """A handler that writes lines by a function, which may have something on the terminal to hide first."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self.write: Callable[[str], None] = _write_line
        self.as_json = as_json
        self.setFormatter(EventFormatter(as_json))

    def emit(self, record: logging.LogRecord) -> None:
        self.write(self.format(record))


@contextmanager
def logging_events(level: str | None, format: str | None) -> Iterator[EventHandler | None]:
    """Log events while the block runs, its failure among them, if a level or a format is given."""
    if level is None and format is None:
        yield None
        return
    handler = EventHandler(format == "json")
    ROOT.addHandler(handler)
    ROOT.setLevel(LEVELS[level or "info"])
    try:
        yield handler
    except SquallError as error:
        handler.write = _write_line
        log_event(QUERY, ERROR, "fail", code=error.code, text=str(error))
        raise click.exceptions.Exit(status_of(error)) from None
    except Interrupted:
        log_event(QUERY, INFO, "stop", reason="at once")
        raise
    finally:
        ROOT.removeHandler(handler)
        ROOT.setLevel(logging.NOTSET)


def _write_line(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
