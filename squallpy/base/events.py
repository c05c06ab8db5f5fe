"""Events of a run as log records: a name, and fields whose names stay the same.

log_event(CHECKPOINT, INFO, "snapshot", partition=3, bytes=4711)
  text   2026-01-01T00:00:00.123Z info squallpy.checkpoint snapshot partition=3 bytes=4711
  json   {"time": "2026-01-01T00:00:00.123Z", "level": "info", "logger": "squallpy.checkpoint", "event": "snapshot", …}

Without a handler at the logger "squallpy", which `--log-level` and `--log-format` set, nothing is written.
"""

import json
import logging
from datetime import UTC, datetime
from logging import DEBUG, ERROR, INFO, WARNING
from typing import Protocol

__all__ = [
    "CHECKPOINT", "COMPILE", "DEBUG", "ERROR", "INFO", "JOINS", "LEVELS", "QUERY", "ROOT", "SOURCES", "SPARK",
    "WARNING", "EventFormatter", "LogEvent", "first_line", "log_event",
]  # fmt: skip

ROOT = logging.getLogger("squallpy")
ROOT.addHandler(logging.NullHandler())  # NB: or Python prints warnings to stderr by itself
QUERY, CHECKPOINT, JOINS = (ROOT.getChild(name) for name in ("query", "checkpoint", "joins"))
SOURCES, SPARK, COMPILE = (ROOT.getChild(name) for name in ("sources", "spark", "compile"))
LEVELS = {"debug": DEBUG, "info": INFO, "warning": WARNING, "error": ERROR}


class LogEvent(Protocol):
    """A function that takes events, such as `log_event`."""

    def __call__(self, logger: logging.Logger, level: int, event: str, **fields: object) -> None: ...


def log_event(logger: logging.Logger, level: int, event: str, **fields: object) -> None:
    """Log an event with its fields."""
    if logger.isEnabledFor(level):
        logger.log(level, "%s", event, extra={"fields": fields})


def first_line(error: BaseException) -> str:
    """Return what an error says in its first line, which for those of a JVM has a stack trace behind it."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


class EventFormatter(logging.Formatter):
    """A line for each event, as JSON or as text."""

    def __init__(self, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"time": time, "level": record.levelname.lower(), "logger": record.name}
        fields: dict[str, object] = getattr(record, "fields", {})
        if self._as_json:
            return json.dumps(head | {"event": record.getMessage()} | fields, default=str)
        words = (f"{name}={_word(value)}" for name, value in fields.items() if value is not None)
        return " ".join([*head.values(), record.getMessage(), *words])


def _word(value: object) -> str:
    """Write a value as one word, with quotes where it has blanks."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return json.dumps(text) if not text or set(text) & set(' "=\n\t') else text
