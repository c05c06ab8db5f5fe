"""Formats and options of `USING format OPTIONS (...)`."""

from collections.abc import Mapping

from squallpy.base.errors import SquallError, nearest

FORMATS = ("csv", "json", "parquet")

OPTIONS: dict[str, str] = {
    "path": "file, folder or glob, local or any Arrow filesystem",
    "header": "csv: the first line names the columns (true or false)",
    "delimiter": "csv: what separates fields",
    "sep": "csv: the same as delimiter",
    "quote": "csv: the quote character",
    "escape": "csv: the escape character",
    "null": "csv: the text that means NULL",
    "encoding": "csv: UTF-8, UTF-16, ISO-8859-1, … where no byte order mark tells",
    "charset": "csv: the same as encoding",
    "op": "the column of a change stream that says + (insert) or - (delete)",
    "on_error": "what to do with a row that cannot be read: fail or skip",
    "watch": "whether files and lines that come later are read, too (true or false)",
    "maxfilespertrigger": "the most files that a batch begins to read of a watched folder",
}
ALIASES = {"sep": "delimiter", "charset": "encoding"}
CHOICES: dict[str, tuple[str, ...]] = {
    "header": ("true", "false"),
    "on_error": ("fail", "skip"),
    "watch": ("true", "false"),
}
NUMBERS = ("maxfilespertrigger",)


def check_format(name: str) -> str:
    """Return the format in lower case; SQ7002 if it is not one of FORMATS."""
    if name.lower() not in FORMATS:
        raise SquallError("SQ7002", f'unknown format "{name}"', hint=nearest(name, FORMATS))
    return name.lower()


def check_option(format: str, key: str, value: str, given: Mapping[str, str]) -> tuple[str, str]:
    """Check an option and return its key, by its main name, with its value.

    Raises SQ7002 if the key is unknown, not for the format or given before, or the value is not one of its choices.
    """
    if key.lower() not in OPTIONS:
        raise SquallError("SQ7002", f'unknown option "{key}"', hint=nearest(key, OPTIONS))
    if OPTIONS[key.lower()].startswith("csv:") and format != "csv":
        raise SquallError("SQ7002", f'option "{key}" is for csv, not for {format}', hint="remove it")
    if key.lower() == "path" and not value:
        raise SquallError("SQ7002", f'option "{key}" is empty', hint="name a file, a folder or a glob")
    kept = ALIASES.get(key.lower(), key.lower())
    if kept in given:
        raise SquallError("SQ7002", f'option "{key}" is given twice')
    choices = CHOICES.get(kept)
    if choices and value.lower() not in choices:
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint=f"one of {', '.join(choices)}")
    if kept in NUMBERS and not (value.isdecimal() and int(value) > 0):
        raise SquallError("SQ7002", f'option "{key}" cannot be "{value}"', hint="a number of at least 1")
    return kept, value.lower() if choices else value
