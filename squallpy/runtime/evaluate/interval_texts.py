"""INTERVALs DAY TO SECOND as text, a column at a time, as Spark writes them.

93784500000 µs   →   INTERVAL '1 02:03:04.5' DAY TO SECOND
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

BEFORE, BEHIND = "INTERVAL '", "' DAY TO SECOND"


def interval_texts(column: pa.Array) -> pa.Array:
    """Write a column of durations in microseconds."""
    micros = np.asarray(column.view(pa.int64()).fill_null(0))
    seconds, rest = np.divmod(np.abs(micros), 1_000_000)
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86_400
    sign = pc.if_else(pa.array(micros < 0), "-", "")
    times = (_padded(part, 2) for part in (hours % 24, minutes % 60, seconds % 60))
    fraction = pc.if_else(pa.array(rest == 0), "", _joined(".", _padded(rest, 6)))
    day = _joined(BEFORE, sign, pa.array(days).cast(pa.string()))
    text = _joined(day, " ", pc.binary_join_element_wise(*times, ":"), pc.utf8_rtrim(fraction, "0"), BEHIND)
    return pc.if_else(column.is_valid(), text, pa.scalar(None, pa.string())) if column.null_count else text


def _padded(numbers: "np.ndarray[tuple[int], np.dtype[np.int64]]", digits: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), digits, "0")


def _joined(*parts: pa.Array | str) -> pa.Array:
    return pc.binary_join_element_wise(*(pa.scalar(p) if isinstance(p, str) else p for p in parts), "")
