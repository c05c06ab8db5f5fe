"""Secrets in options: named in a script, found where they are used, kept nowhere.

resolve("postgresql://u:${env:PGPASSWORD}@h/db")   →   the same with what the environment says
resolve("${file:/run/secrets/db}")                 →   the text of the file, without the line end
"""

import os
import re
from pathlib import Path
from urllib.parse import quote

from squallpy.base.errors import SquallError

_REFERENCE = re.compile(r"\$\{(\w+):([^}]*)\}")


def resolve(text: str, in_url: bool = False) -> str:
    """Put secrets in the place of their names; SQ7002 for one that is not there. `in_url`: written as in a URL."""
    return _REFERENCE.sub(
        lambda found: quote(_secret(*found.groups()), "") if in_url else _secret(*found.groups()), text
    )


def _secret(kind: str, name: str) -> str:
    if kind == "env":
        if name not in os.environ:
            raise SquallError("SQ7002", f"the environment has no variable {name}", hint=f"export {name}=…")
        return os.environ[name]
    if kind != "file":
        raise SquallError("SQ7002", f"${{{kind}:…}} is no place of secrets", hint="write ${env:NAME} or ${file:PATH}")
    try:
        return Path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise SquallError(
            "SQ7002", f"the secret in {name} cannot be read: {why}", hint="see that it is there"
        ) from None
