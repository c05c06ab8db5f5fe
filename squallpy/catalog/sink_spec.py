"""Declarations of sinks: CREATE SINK, and --out, which is its short form.

CREATE SINK o USING csv OPTIONS (path 'out/', mode 'upsert') AS …   →   SinkSpec("o", "csv", {"path": "out/"}, "upsert")
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from squallpy.base.errors import Span, SquallError, nearest
from squallpy.base.records import dataclass
from squallpy.catalog.connector_options import CONNECTORS, check_connector_option

FORMATS = ("csv", "json", "parquet")
"""Formats of files."""
PYTHON = "python"
"""The format of a sink whose class an option names."""
FINAL, CHANGES, APPEND, UPSERT = MODES = ("final", "changes", "append", "upsert")
COMPRESSIONS = {
    "csv": ("none", "gzip", "bz2", "zstd"),
    "json": ("none", "gzip", "bz2", "zstd"),
    "parquet": ("none", "snappy", "gzip", "zstd"),
}
OPTIONS: dict[str, str] = {
    "path": "a folder of files, or with mode 'final' one file, local or any Arrow filesystem",
    "mode": "what is written: final, changes, append or upsert",
    "key": "the columns that tell rows apart, for mode 'upsert'",
    "compression": "how files are compressed",
    "compact": "of how many batches a file is made",
}
_OF_MODES = ("mode", "key")
ADDED = {FINAL: (), CHANGES: ("batch", "op"), APPEND: (), UPSERT: ("batch", "op")}
"""Columns in front of the query's own, by mode."""


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """A target of the rows of a query.

    Args:
        options: Those of its format; `mode` and `key` are fields.
        mode: One of MODES; None: final where the input has an end, else changes.
        key: Columns that tell rows apart, for mode upsert; where rows are messages, those of their keys.
        spans: The places of options, by name.
        target: The path on this host, or URI, if it is not that of the options, which is relative to the script.
    """

    name: str
    format: str
    options: Mapping[str, str]
    mode: str | None = None
    key: tuple[str, ...] | None = None
    span: Span | None = None
    spans: Mapping[str, Span] = field(default_factory=dict, compare=False)
    target: Path | str | None = None

    def __hash__(self) -> int:
        return hash(self.name)

    def place(self, option: str) -> Span | None:
        """Return the place of an option, or that of the sink's name."""
        return self.spans.get(option, self.span)

    def check_columns(self, mode: str, names: Sequence[str]) -> None:
        """Raise SQ2007 for a column of the query that is called as one that a mode adds."""
        for name in names:
            if name.lower() in ADDED[mode]:
                message = f"\"{name}\" is a column that mode '{mode}' adds"
                raise SquallError("SQ2007", message, self.place("mode"), "rename it in the query: … AS …")


def check_sink_format(name: str) -> str:
    """Return the format of a sink in lower case; SQ7002 if there is none of that name."""
    known = (*FORMATS, *CONNECTORS, PYTHON)
    if name.lower() not in known:
        from squallpy.base.entry_points import SINKS, names_of  # NB: 0.02 s

        if name.lower() not in (others := names_of(SINKS)):
            raise SquallError("SQ7002", f'unknown format of a sink "{name}"', hint=nearest(name, (*known, *others)))
    return name.lower()


def check_sink_option(format: str, key: str, value: str, given: Mapping[str, str]) -> tuple[str, str]:
    """Check an option and return its name and value; SQ7002 if it is unknown, given before, or has another value.

    A sink in Python gets any others, as they are written.
    """
    name = key.lower()
    if format in FORMATS and name not in OPTIONS:
        raise SquallError("SQ7002", f'unknown option "{key}"', hint=nearest(key, OPTIONS))
    if name in (each.lower() for each in given):
        raise SquallError("SQ7002", f'option "{key}" is given twice')
    if format in CONNECTORS and name not in _OF_MODES:
        return check_connector_option(format, key, value, CONNECTORS[format].sink)
    if format not in FORMATS and name not in _OF_MODES:
        return key, value
    if not value.strip():
        raise SquallError("SQ7002", f'option "{key}" is empty', hint=OPTIONS[name])
    choices = {"mode": MODES, "compression": COMPRESSIONS.get(format, ())}.get(name)
    if choices and value.lower() not in choices:
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=nearest(value, choices))
    if name == "compact" and not (value.isdecimal() and int(value) > 1):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a number of at least 2")
    return name, value.lower() if choices else value
