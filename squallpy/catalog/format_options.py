"""Formats and options of `USING format OPTIONS (...)`."""

from collections.abc import Mapping

from squallpy.base.batch_trigger import parse_interval
from squallpy.base.entry_points import SOURCES, load, names_of
from squallpy.base.errors import SquallError, nearest
from squallpy.catalog.connector_options import CHANGES, CONNECTORS, check_connector_option

FORMATS = ("csv", "json", "parquet", "avro")
"""Formats of files."""
ADAPTERS = {"python": ("class", "generator"), "spark": ("format", "class")}
"""Sources that are adapters, each with options of which it needs one; it gets all that are not ours."""
SOCKET = "socket"
"""The source of lines that a server sends, in a format of LINES."""
HTTP = "http"
"""The source of rows that are POSTed, in a format of LINES or as Arrow."""
LINES = ("csv", "json")
ARROW = "arrow"

OPTIONS: dict[str, str] = {
    "path": "files: file, folder or glob, local or any Arrow filesystem",
    "header": "csv: the first line names the columns (true or false)",
    "delimiter": "csv, socket and http: what separates fields",
    "sep": "csv, socket and http: the same as delimiter",
    "quote": "csv, socket and http: the quote character",
    "escape": "csv, socket and http: the escape character",
    "null": "csv, socket and http: the text that means NULL",
    "encoding": "csv: UTF-8, UTF-16, ISO-8859-1, … where no byte order mark tells",
    "charset": "csv: the same as encoding",
    "compression": "csv and json: gzip, bz2, zstd, lz4 or none, where no suffix tells (.gz, .bz2, .zst, .lz4)",
    "op": "the column of a change stream that says + (insert) or - (delete)",
    "changelog": "how rows tell changes: append, op (as op 'op' does), upsert (by PRIMARY KEY) or debezium",
    "tombstone": "changelog 'upsert': the column that says which rows delete their key",
    "on_error": "what to do with a row that cannot be read: fail, skip or dead-letter",
    "dead_letter": "on_error 'dead-letter': the file that gets such rows' places and reasons (as JSON), or the topic",
    "watch": "files: whether files and lines that come later are read, too (true or false)",
    "spool": "sources: whether rows are kept in the checkpoint, for they cannot be read twice (true or false)",
    "idle_timeout": "the time without rows after which a stream holds back no windows of others: '30 seconds'",
    "expected_rows": "about how many rows there are at a time, by which what views keep is chosen",
    "close_after": "the time without rows after which event time goes on by itself, so that windows close: '1 minute'",
    "host": "socket and http: the server that sends lines, or the name or address to which rows are POSTed (127.0.0.1)",
    "port": "socket and http: the port of the server, or of that address",
    "format": "socket and http: the format of lines, csv (the default of sockets) or json (that of http), or arrow",
    "endpoint": "http: the path at the address, by default '/' and the name of the stream",
    "token_env": "http: the environment variable with the token that is asked for, as Authorization: Bearer TOKEN",
    "order": "files: the order in which rows are read: as they are in the files, or random",
    "seed": "files: a number from which a random order is derived",
    "maxfilespertrigger": "files: the most files that a batch begins to read of a watched folder",
    "maxbytespertrigger": "files: about the most bytes of a watched folder that a batch reads",
}
_GENERAL = [name for name, about in OPTIONS.items() if not about.startswith(("csv", "files:", "socket", "http:"))]
_KINDS = {
    "csv": ("csv",),
    "csv, socket and http": ("csv", SOCKET, HTTP),
    "csv and json": ("csv", "json"),
    "files": FORMATS,
    "socket and http": (SOCKET, HTTP),
    "http": (HTTP,),
}
DEAD_LETTER = "dead-letter"
RANDOM = "random"
STORED = "stored"
"""The option that the word STORED of a declaration sets: rows that were read are kept, for views that come later."""
PUSHED = "pushed"
"""The source of rows that a program pushes."""
ALIASES = {"sep": "delimiter", "charset": "encoding"}
CHOICES: dict[str, tuple[str, ...]] = {
    "changelog": ("append", "op", "upsert", "debezium"),
    "compression": ("gzip", "bz2", "zstd", "lz4", "none"),
    "header": ("true", "false"),
    "on_error": ("fail", "skip", DEAD_LETTER),
    "order": ("file", RANDOM),
    "watch": ("true", "false"),
    "spool": ("true", "false"),
    "format": (*LINES, ARROW),
}
INTERVALS = ("idle_timeout", "close_after")
PORTS = range(1, 1 << 16)
NUMBERS = ("expected_rows", "maxfilespertrigger", "maxbytespertrigger")


def check_format(name: str) -> str:
    """Return the format in lower case; SQ7002 if it is no format of files, no adapter, and none that a package
    brings."""
    sources = (each for each, connector in CONNECTORS.items() if connector.source)
    known = (*FORMATS, SOCKET, HTTP, *ADAPTERS, *sources, PUSHED)
    if name.lower() in known or name.lower() in (brought := names_of(SOURCES)):
        return name.lower()
    raise SquallError("SQ7002", f'unknown format "{name}"', hint=nearest(name, (*known, *brought)))


def row_format(format: str, options: Mapping[str, str]) -> str:
    """Return the format of rows: that of the lines of a socket, or of what is POSTed."""
    defaults = {SOCKET: "csv", HTTP: "json", "kafka": "json"}
    return options.get("format", defaults[format]) if format in defaults else format


def required_options(format: str) -> tuple[str, ...]:
    """List the options of which a format needs one."""
    if format in CONNECTORS:
        return (CONNECTORS[format].needed,)
    return ("path",) if format in FORMATS else ("port",) if format in (SOCKET, HTTP) else ADAPTERS.get(format, ())


def is_ours(name: str, format: str) -> bool:
    """True if an option is not passed on to a source that others have written."""
    return format in (*FORMATS, SOCKET, HTTP) or name in _GENERAL or name in ADAPTERS.get(format, ())


def passed_options(format: str, options: Mapping[str, str]) -> dict[str, str]:
    """Select the options that are passed on to a source that others have written."""
    return {name: value for name, value in options.items() if not is_ours(name, format)}


def check_option(format: str, key: str, value: str, given: Mapping[str, str]) -> tuple[str, str]:
    """Check an option and return its key, by its main name, with its value.

    Raises SQ7002 if the key is unknown, not for the format or given before, or the value is not one of its choices.
    """
    if format in CONNECTORS and CONNECTORS[format].tells and key.lower() in CHANGES:
        message = f'option "{key}" is not for {format}, which tells what comes and goes'
        raise SquallError("SQ7002", message, hint="remove it")
    if format in CONNECTORS and key.lower() not in _GENERAL:
        name, value = check_connector_option(format, key, value, CONNECTORS[format].source)
    elif is_ours(key.lower(), format):
        name, value = _check_own(format, key, value)
    else:
        name = key.lower()
        brought = () if format in (*ADAPTERS, PUSHED) else getattr(load(SOURCES, format), "options", ())
        known = [*brought, *_GENERAL]
        if format not in ADAPTERS and name not in known:
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
    kinds = OPTIONS[name].partition(":")[0]
    if format not in _KINDS.get(kinds, (format,)):
        raise SquallError("SQ7002", f'option "{key}" is for {kinds}, not for {format}', hint="remove it")
    if OPTIONS[name].startswith("sources:") and format in FORMATS:
        raise SquallError("SQ7002", f'option "{key}" is not for {format}: files can be read again', hint="remove it")
    if name == "host" and not value:
        raise SquallError("SQ7002", f'option "{key}" is empty', hint="name a server")
    if name == "path" and not value:
        raise SquallError("SQ7002", f'option "{key}" is empty', hint="name a file, a folder or a glob")
    name = ALIASES.get(name, name)
    choices = LINES if (format, name) == (SOCKET, "format") else CHOICES.get(name)
    if choices and value.lower() not in choices:
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=nearest(value, choices))
    if name in NUMBERS and not (value.isdecimal() and int(value) > 0):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a number of at least 1")
    if name == "endpoint" and not value.startswith("/"):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a path such as '/clicks'")
    if name == "port" and not (value.isdecimal() and int(value) in PORTS):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a number from 1 to 65535")
    if name == "seed" and not (value.isdecimal() and int(value) < 1 << 32):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a number from 0 to 4294967295")
    if name in INTERVALS and parse_interval(value) is None:
        hint = "an interval above 0, such as '30 seconds' or '500 ms'"
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=hint)
    return name, value.lower() if choices else value
