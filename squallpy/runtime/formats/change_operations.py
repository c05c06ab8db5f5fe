"""Decoding of a change stream's operation column to multiplicities: +1 for an insert, −1 for a delete.

    +  c  r  +I  -U  +U  Delete     →     1  1  1  1  -1  1  -1

The words of Debezium, Flink, RisingWave, Materialize (whose `mz_diff` counts), Delta and Spark are known. An update is
two rows, the old one and the new one: a word for an update in one row is refused. Where files of Materialize have
`mz_progressed`, a row in which it is true is a message of progress, and is skipped.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from squallpy.base.errors import shorten
from squallpy.base.records import dataclass
from squallpy.runtime.formats.type_conversion import PROGRESS, Problem

INSERTS = ("+", "i", "c", "r", "1", "+1", "insert", "create", "read", "+i")
DELETES = ("-", "d", "-1", "delete", "-d")
NEW = ("+u", "updateinsert", "updateafter", "updatepostimage")  # row of an update
OLD = ("-u", "updatedelete", "updatebefore", "updatepreimage")
UPDATES = ("u", "update", "upsert")
COUNTED = ("mz_diff", "diff")  # columns with multiplicities

PROGRESSED = "mz_progressed"
MATERIALIZE = ("mz_timestamp", PROGRESSED)  # further columns that describe the change, not the row
TRUE = ("true", "t", "1")

OPERATION = "SQ4005"
IMAGES = "write two: the old row with - or -U, the new one with + or +U; or use changelog 'upsert' or 'debezium'"


@dataclass(frozen=True, slots=True)
class Operations:
    """Multiplicities of rows; `images` are 1 at the old row of an update, −1 at the new one, None without updates."""

    multiplicities: pa.Array
    images: npt.NDArray[np.int64] | None


def columns_of_change(op: str | None) -> tuple[str, ...]:
    """Name the columns that describe a change, where a file has them: the operation column and that of progress."""
    if op is None:
        return ()
    return (op, PROGRESSED) if op.lower() == COUNTED[0] else (op,)


def decode_op(
    values: pa.ChunkedArray, progressed: pa.ChunkedArray | None = None, *, name: str, wrong: dict[int, Problem]
) -> Operations:
    """Decode the operations of rows.

    Invalid ones, and messages of progress, are noted in `wrong`, except in rows with a wrong number of fields.
    """
    texts, at = _dictionary(values)
    words = [text and text.strip().lower().replace("_", "").replace(" ", "") for text in texts]
    counts = np.array([_count(word, name) for word in words], np.int64)
    images = np.array([(word in OLD) - (word in NEW) for word in words], np.int64)
    found = counts[at]
    for row in _progress_rows(progressed):
        if row not in wrong or wrong[row].code != "SQ4003":
            wrong[row], found[row] = PROGRESS, 1
    for row in np.flatnonzero(found == 0).tolist():
        if row not in wrong or wrong[row].code != "SQ4003":
            wrong[row] = _problem(texts[at[row]], words[at[row]], name)
    return Operations(pa.array(found), images[at] if images.any() else None)


# NB: no numbers, which mean one thing as multiplicities and another as flags
TOMBSTONES = frozenset((*DELETES, *OLD, "true", "t")) - {"-1"}
UPSERTS = frozenset((*INSERTS, *NEW, *UPDATES, "false", "f")) - {"1", "+1"}


def decode_tombstones(values: pa.ChunkedArray, name: str, wrong: dict[int, Problem]) -> pa.Array:
    """Decode what the tombstone column says of rows: −1 for those that delete their key, +1 for upserts.

    Others are noted in `wrong`, except in rows with a wrong number of fields.
    """
    texts, at = _dictionary(values)
    words = [text and text.strip().lower().replace("_", "").replace(" ", "") for text in texts]
    found = np.array([(word in UPSERTS) - (word in TOMBSTONES) for word in words], np.int64)[at]
    for row in np.flatnonzero(found == 0).tolist():
        if row not in wrong or wrong[row].code != "SQ4003":
            shown = "NULL" if texts[at[row]] is None else shorten(repr(texts[at[row]]))
            text = f'column "{name}": {shown} says neither that the row deletes its key nor that it does not'
            wrong[row] = Problem(OPERATION, text)
    return pa.array(found)


def _dictionary(values: pa.ChunkedArray) -> tuple[list[str | None], npt.NDArray[np.int64]]:
    """Encode values as distinct texts, NULL last, and each row's index among them."""
    encoded = pa.concat_arrays(values.chunks or [pa.array([], values.type)])
    if not pa.types.is_dictionary(encoded.type):
        encoded = encoded.dictionary_encode()
    texts = [*map(_text, encoded.dictionary), None]
    return texts, np.array(encoded.indices.cast(pa.int64()).fill_null(len(texts) - 1))


def _progress_rows(progressed: pa.ChunkedArray | None) -> list[int]:
    """List the rows that are messages of progress."""
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
    """Count the rows that a normalised word inserts, as in "updatebefore"; 0 if the word is unknown."""
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
        return Problem(OPERATION, f'column "{name}" is NULL, which is not an operation', "write + or -")
    shown = f'column "{name}": {shorten(repr(text))}'
    if word in UPDATES:
        return Problem(OPERATION, f"{shown} is an update in one row", IMAGES)
    if word.lstrip("+-").isdigit():
        hint = f"write + or -; multiplicities are read from a column called {COUNTED[0]}"
        return Problem(OPERATION, f"{shown} is not an operation", hint)
    return Problem(OPERATION, f"{shown} is neither an insert nor a delete", "write + or -")
