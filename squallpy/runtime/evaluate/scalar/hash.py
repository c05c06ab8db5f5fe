"""Evaluators of hashes and encodings: of texts, each that differs once, and of values of any type, as Spark's HASH."""

import hashlib
from base64 import b64encode
from binascii import crc32
from typing import Any

import numpy as np
import pyarrow as pa

from squallpy.base.types import Kind, Type
from squallpy.logical.expressions import Call
from squallpy.runtime.evaluate.evaluator_table import (
    Evaluated,
    evaluator,
    integer_of_each_text,
    of_each_text,
    text_evaluator,
)
from squallpy.runtime.evaluate.spark_hashes import Murmur3, RowHash, XxHash64
from squallpy.runtime.evaluate.vectors import Vec, VectorFrame, VectorFunction, full


@text_evaluator("digest")
@of_each_text
def digest(text: str, algorithm: str) -> str:
    """Hash a text's bytes to hexadecimal digits; `algorithm` is hashlib's name."""
    return hashlib.new(algorithm, text.encode(), usedforsecurity=False).hexdigest()


@evaluator("hash")
def murmur3(call: Call, args: Evaluated) -> VectorFunction:
    return _hashed(call, args, Murmur3, np.int32)


@evaluator("xxhash64")
def xxhash64(call: Call, args: Evaluated) -> VectorFunction:
    return _hashed(call, args, XxHash64, np.int64)


def _hashed(call: Call, args: Evaluated, kind: type[RowHash], signed: type[np.signedinteger[Any]]) -> VectorFunction:
    """Hash the arguments one after the other."""

    def run(frame: VectorFrame) -> Vec:
        row_hash = kind(frame.rows)
        for arg, given in zip(args, call.args, strict=True):
            vec = full(arg(frame), given.type, frame.rows)
            add_values(row_hash, vec, given.type)
        return Vec(row_hash.values.view(signed).astype(np.int64))

    return run


def add_values(row_hash: RowHash, vec: Vec, type: Type) -> None:
    """Hash the values of one argument as Spark holds its type; NULLs are left out."""
    rows = np.arange(len(vec.values)) if vec.valid is None else np.flatnonzero(vec.valid)
    values = vec.values.take(pa.array(rows)) if type.kind is Kind.VARCHAR else np.asarray(vec.values)[rows]
    if type.kind is Kind.VARCHAR:
        row_hash.add_bytes(values, rows)
    elif type.kind in (Kind.INT, Kind.DATE, Kind.BOOLEAN):
        row_hash.add_ints(values, rows)
    elif type.kind is Kind.DOUBLE:
        values = np.where(np.isnan(values), np.nan, values + 0.0)  # NB: one NaN, no -0.0
        row_hash.add_longs(values.view(np.int64), rows)
    elif type.kind is Kind.DECIMAL and type.is_wide:
        row_hash.add_bytes(pa.array([_bytes_of(int(value)) for value in values], pa.binary()), rows)
    else:
        row_hash.add_longs(values, rows)


def _bytes_of(number: int) -> bytes:
    """Write an integer in as few bytes as it takes, as Java's BigInteger does: 128  →  00 80"""
    magnitude = ~number if number < 0 else number
    return number.to_bytes(magnitude.bit_length() // 8 + 1, signed=True)


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
