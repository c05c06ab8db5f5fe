"""Encodings of delimited text: row boundaries in bytes, and the conversion to UTF-8, which Arrow's parser reads.

Row boundaries are found by units: single bytes, or in UTF-16 pairs. Every character that matters to a dialect is ASCII,
so encodings in which an ASCII byte can be a part of another character (Shift-JIS, GBK) are not supported.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from squallpy.base.errors import SquallError, nearest
from squallpy.base.records import dataclass

_CODECS = {
    "utf-8": "utf-8", "utf8": "utf-8", "us-ascii": "ascii", "ascii": "ascii",
    "iso-8859-1": "latin-1", "latin1": "latin-1", "latin-1": "latin-1", "iso-8859-15": "iso-8859-15",
    "windows-1252": "cp1252", "cp1252": "cp1252",
    "utf-16": "utf-16", "utf16": "utf-16", "utf-16le": "utf-16-le", "utf-16be": "utf-16-be",
}  # fmt: skip
_MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
HEAD = 1024  # bytes of a file from which its encoding is found


@dataclass(frozen=True, slots=True)
class Encoding:
    """An encoding by Python's codec, in which every unit has `width` bytes."""

    codec: str = "utf-8"

    @property
    def width(self) -> int:
        return 2 if self.codec.startswith("utf-16") else 1

    def units(self, data: Any) -> npt.NDArray[np.uint8]:
        """Map each unit to one byte, keeping ASCII; an incomplete unit at the end is dropped.

        "a;é" in UTF-16: 61 00 3b 00 e9 00   →   61 3b 80
        """
        if self.width == 1:
            return np.frombuffer(data, np.uint8)
        wide = np.frombuffer(data, "<u2" if self.codec == "utf-16-le" else ">u2", len(data) // 2)
        narrow: npt.NDArray[np.uint8] = np.minimum(wide, 128).astype(np.uint8)
        return narrow

    def utf8(self, data: bytes) -> bytes:
        """Convert to UTF-8; invalid input becomes invalid UTF-8, so that it is found where it is read."""
        if self.codec == "utf-8":
            return data
        if self.width == 1:
            return data.decode(self.codec, "surrogateescape").encode("utf-8", "surrogatepass")
        rest = b"\xff" if len(data) % 2 else b""
        return data[: len(data) // 2 * 2].decode(self.codec, "surrogatepass").encode("utf-8", "surrogatepass") + rest


UTF8 = Encoding()


def codec_of(name: str) -> str:
    """Translate the name of an encoding to Python's; SQ7002 if it is not supported."""
    codec = _CODECS.get(name.lower().replace("_", "-"))
    if codec is None:
        hint = nearest(name, ["UTF-8", "UTF-16", "UTF-16LE", "UTF-16BE", "ISO-8859-1", "windows-1252", "US-ASCII"])
        raise SquallError("SQ7002", f'option "encoding" cannot be "{name}"', hint=hint)
    return codec


def encoding_of(head: bytes, codec: str, file: str) -> tuple[Encoding, int]:
    """Find the encoding of a file that begins with `head`, and where its text begins.

    Its byte order mark decides, then the declared `codec`, else it is UTF-8. SQ4003 for UTF-32, and for UTF-16 that
    neither declares.
    """
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        raise SquallError("SQ4003", f"{file} is in UTF-32, which is not supported", hint="convert it to UTF-8")
    for mark, marked in _MARKS.items():
        if head.startswith(mark):
            return Encoding(marked), len(mark)
    little, big = (head[at::2].count(0) * 4 > len(head) for at in (1, 0))
    if codec == "utf-16":
        return Encoding("utf-16-le" if little and not big else "utf-16-be"), 0
    if not codec and little != big:
        hint = "write OPTIONS (encoding 'UTF-16') if it is"
        raise SquallError("SQ4003", f"{file} looks like UTF-16, without a byte order mark", hint=hint)
    return Encoding(codec or "utf-8"), 0
