"""Text functions, by Arrow's compute kernels; positions count characters from 1."""

from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

LONGEST = 2**31  # characters of a text, and more


def like_pattern(pattern: str, escape: str | None) -> str:
    r"""A LIKE pattern with `escape` as one with `\`, which is what Arrow knows: '10!%' ESCAPE '!' → '10\%'."""
    if escape in (None, "\\"):
        return pattern
    out, at = [], 0
    while at < len(pattern):
        if pattern[at] == escape and at + 1 < len(pattern):
            out.append("\\" + pattern[at + 1])
            at += 2
            continue
        out.append("\\\\" if pattern[at] == "\\" else pattern[at])
        at += 1
    return "".join(out)


def substring(values: Any, start: int, length: int | None) -> Any:
    """SUBSTRING(x, start, length): start 0 means 1; a negative one counts from the end."""
    start, length = max(-LONGEST, min(start, LONGEST)), None if length is None else min(length, LONGEST)
    if length is not None and length <= 0:
        return pc.utf8_slice_codeunits(values, 0, 0)
    if start >= 0:
        begin = max(start - 1, 0)
        return pc.utf8_slice_codeunits(values, begin, None if length is None else begin + length)
    end = None if length is None or start + length >= 0 else start + length
    return pc.utf8_slice_codeunits(values, start, end)


def compare(name: str, left: Any, right: Any) -> Any:
    """Comparison of texts by code point."""
    function = {
        "=": pc.equal,
        "<>": pc.not_equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
    }[name]
    return function(_scalar(left), _scalar(right))


def _scalar(values: Any) -> Any:
    return values if isinstance(values, pa.Array | pa.ChunkedArray) else _constant(values)


@lru_cache(maxsize=1024)  # literals: the same few, batch after batch
def _constant(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.string())


def concat(values: list[Any]) -> Any:
    return pc.binary_join_element_wise(*(_scalar(v) for v in values), "")


def pad(values: Any, width: int, fill: str, left: bool) -> Any:
    """Filled up with a character, or cut, to `width` characters."""
    width = max(0, min(width, LONGEST))
    cut = pc.utf8_slice_codeunits(values, 0, width)
    return (pc.utf8_lpad if left else pc.utf8_rpad)(cut, width, fill) if fill else cut
