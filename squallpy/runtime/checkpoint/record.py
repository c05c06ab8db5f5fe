"""Small records of a durable folder: a line of text with its checksum, so that no other text is taken for it.

write_record(folder, "batch", "24")   →   24 3b8a2c5e
"""

import zlib

from squallpy.base.errors import SquallError
from squallpy.runtime.checkpoint.durable import Durable, within

ANEW = "bring it back from a copy, or choose a new checkpoint"


def write_record(folder: Durable, name: str, text: str) -> None:
    """Put it in the place of what was there."""
    folder.create(name, lambda sink: sink.write(_sealed(text.encode())))


def read_record(folder: Durable, name: str, place: str) -> str | None:
    """What the folder, which is at that place, has by a name; None if nothing, SQ6005 if it is damaged."""
    data = folder.read(name)
    if data is None:
        return None
    text = data.rpartition(b" ")[0]
    if data != _sealed(text):
        raise damaged(name, place)
    return text.decode()


def damaged(name: str, place: str) -> SquallError:
    return SquallError("SQ6005", f"the state is lost: {within(place, name)} damaged", hint=ANEW)


def _sealed(text: bytes) -> bytes:
    return text + b" %08x" % zlib.crc32(text)
