"""The pages of error codes, `docs/errors/SQ2003.md`, which `squall explain SQ2003` prints."""

import re
from pathlib import Path

from squallpy.base.errors import SquallError, nearest

CODE = r"SQ\d{4}"
_PACKAGE = Path(__file__).resolve().parents[1]
_PLACES = (_PACKAGE / "error_pages", _PACKAGE.parent / "docs" / "errors")  # in a wheel; in the repository


def is_code(text: str) -> bool:
    """True if a text, in any case, looks like a code: sq2003."""
    return re.fullmatch(rf"{CODE}", text, re.IGNORECASE) is not None


def read_pages() -> dict[str, str]:
    """Read all pages, by their codes in order."""
    folder = next(place for place in _PLACES if place.is_dir())
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("SQ*.md"))}


def error_page(code: str) -> str:
    """Return the page of a code, in any case; SQ7004 if there is none."""
    pages = read_pages()
    if code.upper() not in pages:
        raise SquallError("SQ7004", f'unknown error code "{code}"', hint=nearest(code, pages))
    return pages[code.upper()]
