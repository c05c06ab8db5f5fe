"""The script of a command: a file, `-` for stdin, or the text of `-c`."""

import os
import sys
from pathlib import Path

from squallpy.base.errors import SquallError
from squallpy.frontend.source_text import decode_script

_STDIN, _COMMAND = "<stdin>", "<command>"


def find_script(file: str | None, command: str | None) -> tuple[Path, str | None]:
    """Find a script's path or, for one that is no file, its name and its text; SQ7004 for none, or two.

    find_script("q.sql", None)     →  (Path("q.sql"), None)
    find_script(None, "SELECT 1")  →  (Path("<command>"), "SELECT 1")
    """
    if command is not None:
        if file is not None:
            raise SquallError("SQ7004", f"the script is given twice, by {file} and by -c", hint="leave one out")
        return Path(_COMMAND), decode_script(os.fsencode(command), _COMMAND)
    if file is None:
        hint = "name a script, or - for stdin, or write it after -c"
        raise SquallError("SQ7004", "missing argument 'QUERY.sql'", hint=hint)
    if file == "-":
        return Path(_STDIN), decode_script(_read_stdin(), _STDIN)
    return Path(file), None


def _read_stdin() -> bytes:
    try:
        if sys.stdin is None:  # closed by the parent process
            raise OSError("it is closed")
        return sys.stdin.buffer.read()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SquallError("SQ4001", f"cannot read the script from stdin: {why}") from None
