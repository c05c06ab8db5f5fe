"""Functions of texts that Arrow has no kernel for: each distinct text once."""

import hashlib
from base64 import b64encode
from binascii import crc32
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from squallpy.runtime.evaluate.vectors import Vec, both

_CODES = {
    letter: code for code, letters in enumerate(("BFPV", "CGJKQSXZ", "DT", "L", "MN", "R"), 1) for letter in letters
}


def of_each(values: Any, function: Callable[[str], Any], type: pa.DataType) -> Any:
    """A function of texts; of NULL it is anything."""
    known = pc.dictionary_encode(values)
    known = known.combine_chunks() if isinstance(known, pa.ChunkedArray) else known
    made = pa.array([function(text) for text in known.dictionary.to_pylist()] or [None], type)
    return made.take(pc.fill_null(known.indices, 0))


def found(vec: Vec, function: Callable[[str], str | None]) -> Vec:
    """A function of texts that have a value for it, or none."""
    made = of_each(vec.values, function, pa.string())
    return Vec(made, both(vec.valid, np.asarray(made.is_valid()) if made.null_count else None))


def digest(text: str, algorithm: str) -> str:
    """The hash of a text's bytes, in hexadecimal digits; `algorithm` as hashlib knows it."""
    return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


def checksum(text: str) -> int:
    return crc32(text.encode())


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def hexadecimal(text: str) -> str:
    return text.encode().hex().upper()


def digits(vec: Vec) -> Vec:
    """Whole numbers in hexadecimal digits, those below 0 as 2⁶⁴ more."""
    known, places = np.unique(vec.values, return_inverse=True)
    return Vec(pa.array([f"{int(n) % 2**64:X}" for n in known], pa.string()).take(pa.array(places)), vec.valid)


def soundex(text: str) -> str:
    """'Robert'  →  'R163'; what does not begin with a letter is left as it is.

    Letters of one code that nothing, or H or W, stands between count once.
    """
    word = text.upper()
    if not ("A" <= word[:1] <= "Z"):
        return text
    code, last = word[0], _CODES.get(word[0], 0)
    for letter in word[1:]:
        found = _CODES.get(letter, 0)
        if found and found != last:
            code += str(found)
        if letter not in "HW":
            last = found
    return code[:4].ljust(4, "0")


def distance(text: str, other: str) -> int:
    """How many characters are put in, taken out or changed, at least, from one text to another (Levenshtein)."""
    row = list(range(len(other) + 1))
    for i, here in enumerate(text, 1):
        corner, row[0] = row[0], i
        for j, there in enumerate(other, 1):
            corner, row[j] = row[j], min(corner + (here != there), row[j] + 1, row[j - 1] + 1)
    return row[-1]
