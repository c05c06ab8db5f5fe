"""Formats and options of `USING format OPTIONS (...)`."""

from collections.abc import Mapping

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.entry_points import SOURCES, load, names_of
from squallpy.base.errors import SquallError, nearest

FORMATS = ("csv", "json", "parquet", "avro")
"""Formats of files."""
ADAPTERS = {"python": ("class", "generator"), "spark": ("format", "class")}
"""Sources that are adapters, each with options of which it needs one; it gets all that are not ours."""
PLANNED = ("kafka", "postgres", "delta", "iceberg")

OPTIONS: dict[str, str] = {
    "path": "files: file, folder or glob, local or any Arrow filesystem",
    "header": "csv: the first line names the columns (true or false)",
    "delimiter": "csv: what separates fields",
    "sep": "csv: the same as delimiter",
    "quote": "csv: the quote character",
    "escape": "csv: the escape character",
    "null": "csv: the text that means NULL",
    "encoding": "csv: UTF-8, UTF-16, ISO-8859-1, … where no byte order mark tells",
    "charset": "csv: the same as encoding",
    "compression": "csv and json: gzip, bz2, zstd, lz4 or none, where no suffix tells (.gz, .bz2, .zst, .lz4)",
    "op": "the column of a change stream that says + (insert) or - (delete)",
    "changelog": "how rows tell changes: append, op (as op 'op' does), upsert (by PRIMARY KEY) or debezium",
    "tombstone": "changelog 'upsert': the column that says which rows delete their key",
    "on_error": "what to do with a row that cannot be read: fail, skip or dead-letter",
    "dead_letter": "on_error 'dead-letter': the file that gets such rows' places and reasons, as JSON lines",
    "watch": "files: whether files and lines that come later are read, too (true or false)",
    "spool": "sources: whether rows are kept in the checkpoint, for they cannot be read twice (true or false)",
    "idle_timeout": "the time without rows after which a stream holds back no windows of others: '30 seconds'",
    "close_after": "the time without rows after which event time goes on by itself, so that windows close: '1 minute'",
    "maxfilespertrigger": "files: the most files that a batch begins to read of a watched folder",
}
_GENERAL = [name for name, about in OPTIONS.items() if not about.startswith(("csv", "files:"))]
DEAD_LETTER = "dead-letter"
ALIASES = {"sep": "delimiter", "charset": "encoding"}
CHOICES: dict[str, tuple[str, ...]] = {
    "changelog": ("append", "op", "upsert", "debezium"),
    "compression": ("gzip", "bz2", "zstd", "lz4", "none"),
    "header": ("true", "false"),
    "on_error": ("fail", "skip", DEAD_LETTER),
    "watch": ("true", "false"),
    "spool": ("true", "false"),
}
INTERVALS = ("idle_timeout", "close_after")
NUMBERS = ("maxfilespertrigger",)


def check_format(name: str) -> str:
    """Return the format in lower case; SQ7002 if it is no format of files, no adapter, and none that a package
    brings."""
    known = (*FORMATS, *ADAPTERS)
    if name.lower() in known or name.lower() in (brought := names_of(SOURCES)):
        return name.lower()
    if name.lower() in PLANNED:
        hint = f"on Spark write USING spark OPTIONS (format '{name.lower()}', …)"
        raise SquallError("SQ3001", f"USING {name} is not supported yet", hint=hint)
    raise SquallError("SQ7002", f'unknown format "{name}"', hint=nearest(name, (*known, *brought)))


def required_options(format: str) -> tuple[str, ...]:
    """List the options of which a format needs one."""
    return ("path",) if format in FORMATS else ADAPTERS.get(format, ())


def is_ours(name: str, format: str) -> bool:
    """True if an option is not passed on to a source that others have written."""
    return format in FORMATS or name in _GENERAL or name in ADAPTERS.get(format, ())


def passed_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Select the options that are passed on to a source that others have written."""
    return {name: value for name, value in options.items() if not is_ours(name, format)}


def check_option(format: str, key: str, value: str, given: Mapping[str, str]) -> tuple[str, str]:
    """Check an option and return its key, by its main name, with its value.

    Raises SQ7002 if the key is unknown, not for the format or given before, or the value is not one of its choices.
    """
    if is_ours(key.lower(), format):
        name, value = _check_own(format, key, value)
    else:
        name = key.lower()
        known = None if format in ADAPTERS else [*getattr(load(SOURCES, format), "options", ()), *_GENERAL]
        if known is not None and name not in known:
            raise SquallError("SQ7002", f'unknown option "{key}" of {format}', hint=nearest(key, known))
    if name in given:
        raise SquallError("SQ7002", f'option "{key}" is given twice')
    return name, value


def _check_own(format: str, key: str, value: str) -> tuple[str, str]:
    """Check an option that is read here."""
    name = key.lower()
    if name in ADAPTERS.get(format, ()):
        return name, value
    if name not in OPTIONS:
        raise SquallError("SQ7002", f'unknown option "{key}"', hint=nearest(key, OPTIONS))
    if OPTIONS[name].startswith("csv:") and format != "csv":
        raise SquallError("SQ7002", f'option "{key}" is for csv, not for {format}', hint="remove it")
    if OPTIONS[name].startswith("csv and json:") and format in ("parquet", "avro"):
        raise SquallError("SQ7002", f'option "{key}" is for csv and json, not for {format}', hint="remove it")
    if OPTIONS[name].startswith("sources:") and format in FORMATS:
        raise SquallError("SQ7002", f'option "{key}" is not for {format}: files can be read again', hint="remove it")
    if name == "path" and not value:
        raise SquallError("SQ7002", f'option "{key}" is empty', hint="name a file, a folder or a glob")
    name = ALIASES.get(name, name)
    choices = CHOICES.get(name)
    if choices and value.lower() not in choices:
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=nearest(value, choices))
    if name in NUMBERS and not (value.isdecimal() and int(value) > 0):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a number of at least 1")
    if name in INTERVALS and parse_interval(value) is None:
        hint = "an interval above 0, such as '30 seconds' or '500 ms'"
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=hint)
    return name, value.lower() if choices else value
