"""Paths and URIs: the file of this host that a text names, or None; names in folders; what messages say.

local_path("~/x")  →  /home/ann/x      local_path("file:///a%20b")  →  /a b      local_path("s3://bucket/x")  →  None
"""

import os
import re
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from squallpy.base.errors import SquallError

# NB: one letter is a drive, not a scheme; and `10:30.csv` or `a:b` are file names
_URI = re.compile(r"\s*(?P<scheme>file(?=:)|[a-z][a-z0-9+.-]+(:[a-z0-9+.-]+)*(?=:/)):", re.IGNORECASE)
_HERE = ("", "localhost")
_LITERAL = "/!$&'()*+,;=:@~"  # in the path of a URI


def scheme_of(place: str) -> str | None:
    """Find the scheme of a URI, in lower case; None for a path."""
    found = _URI.match(place)
    return found["scheme"].lower() if found else None


def is_local(place: str) -> bool:
    """True if a place is a path or a `file` URI, which other hosts may not reach."""
    return scheme_of(place) in (None, "file")


def local_path(place: str) -> Path | None:
    """Find the path on this host that a path or a `file` URI names; None for any other URI.

    Raises ValueError, with the reason, for a `file` URI that names no file of this host.
    """
    scheme = scheme_of(place)
    if scheme is None:
        return Path(os.path.expanduser(place))
    if scheme != "file":
        return None
    parts = urlsplit(place.strip())
    if parts.netloc.lower() not in _HERE:
        raise ValueError(f'it is on the host "{parts.netloc}"; write file:///… for a file of this host')
    if parts.query or parts.fragment:
        raise ValueError("? and # are written %3F and %23 in a file URI")
    path = unquote(parts.path)
    if not path.startswith("/"):
        raise ValueError("a file URI has an absolute path: file:///…")
    if "\0" in path:
        raise ValueError("a path has no NUL")
    return Path(path)


def join_path(folder: str, name: str) -> str:
    """Append a name to a path or URI: join_path("s3://b/q?region=eu", "a b")  →  s3://b/q/a%20b?region=eu"""
    scheme = scheme_of(folder)
    if scheme is None:
        return f"{folder}/{name}"
    path, mark, options = folder.partition("?")
    # NB: Arrow decodes URIs of its own file systems, and none of fsspec's
    return f"{path.rstrip('/')}/{name if scheme.startswith('fsspec+') else quote(name, _LITERAL)}{mark}{options}"


def show_uri(uri: str) -> str:
    """Format a URI for messages: without its options and user, which may be secrets, and with its letters decoded."""
    scheme, mark, rest = uri.strip().partition("?")[0].partition("://")
    server, slash, path = rest.partition("/")
    return f"{scheme}{mark}{server.rpartition('@')[2]}{slash}{path if scheme.startswith('fsspec+') else unquote(path)}"


def output_place(place: str, option: str) -> Path | str:
    """Find the local path, or the URI, that an option names for output; SQ7003 if it names nothing."""
    if not place.strip():
        raise SquallError("SQ7003", f"{option} has an empty name", hint="name a file")
    if "\0" in place:
        raise SquallError("SQ7003", f"{option} names no file: a path has no NUL")
    try:
        return local_path(place) or place
    except ValueError as error:
        raise SquallError("SQ7003", f"cannot write {option} {place}: {error}") from None


def output_path(place: str, option: str) -> Path:
    """Find the local file that an option names for output; SQ7003 for any other place."""
    path = output_place(place, option)
    if isinstance(path, str):
        what = f"cannot write {option} {place}: {scheme_of(place)} is not supported, only local files are"
        raise SquallError("SQ7003", what, hint="name a path or a URI file:///…")
    return path
