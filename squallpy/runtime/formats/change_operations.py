"""The operation column of a change stream → multiplicities: +1 for a row that comes, −1 for one that goes.

    +  c  r  +I  -U  +U  Delete     →     1  1  1  1  -1  1  -1

Known are the words of Debezium, Flink, RisingWave, Materialize (whose `mz_diff` counts), Delta and Spark. An update is
two rows, the old one and the new one: a word for an update in one row is refused, with images or by key. Where files of
Materialize have `mz_progressed`, a row in which that is true is a message of progress and left out.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.errors import shorten
from squallpy.runtime.formats.conform import PROGRESS, Problem

INSERTS = ("+", "i", "c", "r", "1", "+1", "insert", "create", "read", "+i")
DELETES = ("-", "d", "-1", "delete", "-d")
NEW = ("+u", "updateinsert", "updateafter", "updatepostimage")  # of an update
OLD = ("-u", "updatedelete", "updatebefore", "updatepreimage")
UPDATES = ("u", "update", "upsert")
COUNTED = ("mz_diff", "diff")  # columns that say how many rows come or go

PROGRESSED = "mz_progressed"
MATERIALIZE = ("mz_timestamp", PROGRESSED)  # columns beside mz_diff that are of the change, not of the row
TRUE = ("true", "t", "1")

OPERATION = "SQ4005"
IMAGES = "write two: the old row (before) with - or -U, the new one (after) with + or +U"


@dataclass(frozen=True, slots=True)
class Operations:
    """Multiplicities of rows; `images` are 1 at the old row of an update, −1 at the new one, None without updates."""

    multiplicities: pa.Array
    images: npt.NDArray[np.int64] | None


def columns_of_change(op: str | None) -> tuple[str, ...]:
    """The columns that say what happens to a row, where a file has them: the operation column and that of progress."""
    if op is None:
        return ()
    return (op, PROGRESSED) if op.lower() == COUNTED[0] else (op,)


def decode_op(
    values: pa.ChunkedArray, progressed: pa.ChunkedArray | None = None, *, name: str, wrong: dict[int, Problem]
) -> Operations:
    """The operations of rows; what is none is noted in `wrong`, except where a row has not the fields for it, and so
    are messages of progress."""
    texts, at = _dictionary(values)
    words = [text and text.strip().lower().replace("_", "").replace(" ", "") for text in texts]
    counts = np.array([_count(word, name) for word in words], np.int64)
    images = np.array([(word in OLD) - (word in NEW) for word in words], np.int64)
    found = counts[at]
    for row in _progress(progressed):
        if row not in wrong or wrong[row].code != "SQ4003":
            wrong[row], found[row] = PROGRESS, 1
    for row in np.flatnonzero(found == 0).tolist():
        if row not in wrong or wrong[row].code != "SQ4003":
            wrong[row] = _problem(texts[at[row]], words[at[row]], name)
    return Operations(pa.array(found), images[at] if images.any() else None)


def _dictionary(values: pa.ChunkedArray) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """The texts that values are, each once and NULL last, and the number of that of each row."""
    encoded = pa.concat_arrays(values.chunks or [pa.array([], values.type)])
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    texts = [*map(_text, encoded.dictionary), None]
    return texts, np.array(encoded.indices.cast(pa.int64()).fill_null(len(texts) - 1))


def _progress(progressed: pa.ChunkedArray | None) -> list[int]:
    """The rows that are messages of progress."""
    if progressed is None:
        return []
    texts, at = _dictionary(progressed)
    is_true = np.array([text is not None and text.strip().lower() in TRUE for text in texts])
    rows: list[int] = np.flatnonzero(is_true[at]).tolist()
    return rows


def _text(value: pa.Scalar) -> str | None:
    plain: Any = value.as_py()
    if plain is None:
        return None
    return plain.decode(errors="backslashreplace") if isinstance(plain, bytes) else str(plain)


def _count(word: str | None, name: str) -> int:
    """How many rows come; 0 if the word is not known. "UPDATE_BEFORE" is spelled "updatebefore" here."""
    if word is None:
        return 0
    if word in INSERTS or word in NEW:
        return 1
    if word in DELETES or word in OLD:
        return -1
    digits = word.removeprefix("-").removeprefix("+")
    if name.lower() in COUNTED and digits.isascii() and digits.isdigit() and len(digits) < 10:
        return int(word)
    return 0


def _problem(text: str | None, word: str | None, name: str) -> Problem:
    if text is None or word is None:
        return Problem(OPERATION, f'column "{name}" is NULL, which is no operation', "write + or -")
    shown = f'column "{name}": {shorten(repr(text))}'
    if word in UPDATES:
        return Problem(OPERATION, f"{shown} is an update in one row", IMAGES)
    if word.lstrip("+-").isdigit():
        hint = f"write + or -; how often rows come or go is read from a column called {COUNTED[0]}"
        return Problem(OPERATION, f"{shown} is no operation", hint)
    return Problem(OPERATION, f"{shown} is neither an insert nor a delete", "write + or -")
