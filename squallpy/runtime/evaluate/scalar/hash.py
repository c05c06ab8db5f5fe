"""Evaluators of hashes and encodings of texts, which compute each distinct text once."""

import hashlib
from base64 import b64encode
from binascii import crc32

import numpy as np
import pyarrow as pa

from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.evaluator_table import (
    Evaluated,
    evaluator,
    integer_of_each_text,
    of_each_text,
    text_evaluator,
)
from squallpy.runtime.evaluate.vectors import Vec, VectorFunction, full


@text_evaluator("digest")
@of_each_text
def digest(text: str, algorithm: str) -> str:
    """Hash a text's bytes to hexadecimal digits; `algorithm` is hashlib's name."""
    return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


@text_evaluator("crc32")
@integer_of_each_text
def checksum(text: str) -> int:
    return crc32(text.encode())


@text_evaluator("base64")
@of_each_text
def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


@text_evaluator("hex")
@of_each_text
def hexadecimal(text: str) -> str:
    return text.encode().hex().upper()


@evaluator("hex_number")
def hexadecimal_number(call: Call, args: Evaluated) -> VectorFunction:
    return lambda frame: hexadecimal_digits(full(args[0](frame), call.args[0].type, frame.rows))


def hexadecimal_digits(vec: Vec) -> Vec:
    """Write integers in hexadecimal digits, negative ones as 2⁶⁴ more."""
    known, places = np.unique(vec.values, return_inverse=True)
    return Vec(pa.array([f"{int(n) % 2**64:X}" for n in known], pa.string()).take(pa.array(places)), vec.valid)
